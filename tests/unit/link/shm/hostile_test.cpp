// A peer that breaks the rules after a good handshake: the other side ends the link, or gets
// harmless bytes.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "port/memory.hpp"
#include "support/link_end.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"
#include "unit/link/shm/hostile_peer.hpp"
#include "unit/link/shm/open_resources.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using port::Lane;

/// Takes a random part of what it gets, and reads all of it.
class FickleSink final : public port::Sink {
public:
    explicit FickleSink(Random& random) : random_(&random) {}
    std::size_t write(std::uint64_t /*offset*/, port::ConstBytes bytes) noexcept override {
        for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
        if (random_->chance(0.7)) return bytes.size();
        return static_cast<std::size_t>(random_->below(bytes.size() + 1));
    }
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }
    unsigned sum = 0;

private:
    Random* random_;
};

/// The honest side: uses its link at random.
class Victim {
public:
    explicit Victim(Random& random) : random_(&random) {}

    void turn(TimePoint& now) {
        now += std::chrono::microseconds(random_->below(4'000));
        if (random_->chance(0.2) && carrier->fall_asleep()) carrier->wake_up();
        carrier->on_ready(now);
        carrier->flush(now);
        while (auto event = carrier->poll_event()) handle(*event);
        carrier->flush(now);
    }
    void act() {
        if (link == nullptr) return;
        switch (random_->below(8)) {
            case 0: {
                const auto bytes = pattern(1, static_cast<std::size_t>(random_->below(20'000)));
                const std::array<port::ConstBytes, 1> pieces{bytes};
                link->write(static_cast<Lane>(random_->below(3)), pieces);
                break;
            }
            case 1:
                if (sent < 300) {
                    link->send(source_, {});
                    ++sent;
                }
                break;
            case 2:
                link->cancel(port::StreamId(random_->below(4)));
                break;
            case 3:
                link->wake_sink(port::StreamId(random_->below(4)));
                link->wake_sink(static_cast<Lane>(random_->below(3)));
                break;
            case 4:
                link->refuse(port::StreamId(random_->below(4)));
                break;
            case 5:
                if (random_->chance(0.05)) link->close("enough");
                if (random_->chance(0.01)) link->drop("more than enough");
                break;
            default:
                link->nudge();
        }
    }

    std::unique_ptr<shm::Carrier> carrier = std::move(*shm::Carrier::open());
    port::Link* link = nullptr;
    std::optional<port::Down> down{};
    std::size_t sent = 0;

    void forget_round() {
        down.reset();
        sinks_.clear();
        lanes_.clear();
        memories_.clear();
        sent = 0;
    }

private:
    void handle(port::LinkEvent& event) {
        if (auto* up = std::get_if<port::Up>(&event.what)) {
            link = up->link;
            for (std::size_t i = 0; i < port::kLanes; ++i) {
                lanes_.push_back(std::make_unique<FickleSink>(*random_));
                link->receive(static_cast<Lane>(i), *lanes_.back());
            }
        } else if (auto* opened = std::get_if<port::Opened>(&event.what)) {
            if (random_->chance(0.8)) {
                auto& sink = sinks_[opened->stream.value()];
                sink = std::make_unique<FickleSink>(*random_);
                link->receive(opened->stream, *sink);
                if (random_->chance(0.7)) link->open_window(opened->stream);
            }
        } else if (auto* shared = std::get_if<port::Shared>(&event.what)) {
            unsigned sum = 0;
            for (const std::byte byte : shared->memory->bytes()) {
                sum += std::to_integer<unsigned>(byte);
            }
            if (sum != 1) memories_.push_back(shared->memory);
        } else if (auto* ended = std::get_if<port::Down>(&event.what)) {
            down = std::move(*ended);
            link = nullptr;
            carrier->forget(event.link);
        }
    }

    Random* random_;
    std::vector<std::byte> content_ = pattern(9, 100'000);
    std::array<port::ConstBytes, 1> regions_{port::ConstBytes(content_)};
    port::MemorySource source_{regions_};
    std::map<std::uint64_t, std::unique_ptr<FickleSink>> sinks_;
    std::vector<std::unique_ptr<FickleSink>> lanes_;
    std::vector<std::shared_ptr<const port::PeerMemory>> memories_;
};

std::vector<std::byte> random_bytes(Random& random, std::size_t most) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(random.below(most + 1)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    return bytes;
}

// Numbers that get past the first checks.
std::uint64_t plausible(Random& random) {
    switch (random.below(6)) {
        case 0:
            return random.next();
        case 1:
            return ~std::uint64_t{0} - random.below(16);
        case 2:
            return std::uint64_t{1} << random.below(64);
        default:
            return random.below(5);
    }
}

void write_plausible_record(Random& random, HostilePeer& peer) {
    auto bytes = random_bytes(random, random.chance(0.1) ? 16'384 : 64);
    if (random.chance(0.5)) bytes.resize(random.chance(0.5) ? 8 : 16);
    for (std::size_t at = 0; at + 8 <= bytes.size() && at < 16; at += 8) {
        const std::uint64_t number = plausible(random);
        std::memcpy(bytes.data() + at, &number, sizeof number);
    }
    peer.write(
        {.kind = static_cast<std::uint8_t>(1 + random.below(shm::kLastRecordKind + 1)),
         .detail = static_cast<std::uint8_t>(random.chance(0.9) ? random.below(4) : random.next())},
        bytes);
}

void misbehave(Random& random, HostilePeer& peer) {
    shm::Control& control = peer.own.control();
    switch (random.below(24)) {
        case 0: {  // anything anywhere in the ring
            const auto bytes = random_bytes(random, 4'096);
            std::memcpy(peer.own.ring() + random.below(peer.own.ring_bytes()), bytes.data(),
                        bytes.size());
            break;
        }
        case 1: {  // a head with a wrong length
            const shm::RecordHead head{
                .bytes = static_cast<std::uint32_t>(plausible(random)),
                .kind = static_cast<std::uint8_t>(random.below(12)),
                .detail = static_cast<std::uint8_t>(random.below(4)),
                .zero = random.chance(0.9) ? std::uint16_t{0} : std::uint16_t{9}};
            peer.writer.commit(head);
            break;
        }
        case 2:
            control.taken.store(plausible(random));
            break;
        case 3:
        case 4:  // reads as an honest peer does
            if (peer.theirs.control().ended.load() == 0) {
                control.taken.store(control.taken.load() + 8 * random.below(3));
            }
            break;
        case 5:
            control.sleep.store(static_cast<std::uint32_t>(random.next()));
            break;
        case 6:
            control.reason_bytes = static_cast<std::uint32_t>(random.next());
            if (random.chance(0.2)) control.ended.store(static_cast<std::uint32_t>(random.next()));
            break;
        case 7:
            if (random.chance(0.3))
                shm::send_message(peer.socket.number(), random_bytes(random, 128));
            break;
        case 8:
            if (random.chance(0.3)) {
                const shm::ShareNote note{
                    .name = 1,
                    .bytes = random.chance(0.5) ? shm::page_bytes() : plausible(random),
                    .used = plausible(random)};
                const auto memory = std::move(*shm::OwnShare::make(1));
                shm::send_message(peer.socket.number(), note.encoded(),
                                  random.chance(0.8) ? memory->descriptor() : -1);
            }
            break;
        case 9:
            if (random.chance(0.1)) peer.socket = Descriptor();
            break;
        case 10:
            shm::ring_bell(peer.socket.number());
            break;
        default:
            write_plausible_record(random, peer);
    }
}

TEST(shm_hostile, a_peer_that_writes_anything_ends_its_link_at_most) {
    const std::uint64_t seed = test_seed(11);
    Random random(seed);
    Victim victim(random);
    TimePoint now(std::chrono::seconds(1000));
    ASSERT_TRUE(victim.carrier->invite(now, Identity{}).has_value());
    std::map<Errc, int> reasons;
    const int rounds = kSanitized ? 1'000 : 4'000;
    OpenResources before{};
    for (int round = 0; round < rounds; ++round) {
        if (round == 1) before = OpenResources::count();
        auto peer = HostilePeer::join(*victim.carrier, now);
        ASSERT_NE(peer, nullptr) << round;
        for (std::uint64_t i = random.below(200); i != 0 && !victim.down; --i) {
            if (random.chance(0.3)) victim.act();
            if (random.chance(0.5)) victim.turn(now);
            misbehave(random, *peer);
        }
        victim.turn(now);
        if (!victim.down) ++reasons[Errc::cancelled];  // harmless so far
        peer.reset();
        for (int i = 0; i < 10 && !victim.down; ++i) {
            now += 3ms;
            victim.turn(now);
        }
        ASSERT_TRUE(victim.down.has_value()) << round;
        ++reasons[victim.down->reason.code()];
        victim.forget_round();
    }
    EXPECT_GT(reasons[Errc::protocol_violation], rounds / 10);
    EXPECT_GT(reasons[Errc::cancelled], 0);
    for (const auto& [code, count] : reasons) {
        EXPECT_TRUE(
            (std::set{Errc::protocol_violation, Errc::link_closed, Errc::timed_out, Errc::cancelled}
                 .contains(code)))
            << name(code) << " " << count;
    }
    const OpenResources after = OpenResources::count();
    EXPECT_EQ(after.memory_mappings, before.memory_mappings);
    EXPECT_LE(after.descriptors, before.descriptors + 1);
}

class ShmRules : public ::testing::Test {
protected:
    void SetUp() override {
        peer_ = HostilePeer::join(*victim_.carrier, now_);
        ASSERT_NE(peer_, nullptr);
        victim_.turn(now_);
        ASSERT_NE(victim_.link, nullptr);
    }
    bool is_violated() {
        for (int i = 0; i < 3 && !victim_.down; ++i) {
            now_ += 3ms;
            victim_.turn(now_);
        }
        return victim_.down && victim_.down->reason.code() == Errc::protocol_violation;
    }
    bool write(shm::RecordKind kind, std::uint8_t detail, std::vector<std::uint64_t> words,
               std::size_t more = 0) {
        std::vector<std::byte> bytes(words.size() * 8 + more);
        if (!words.empty()) std::memcpy(bytes.data(), words.data(), words.size() * 8);
        return peer_->write({.kind = static_cast<std::uint8_t>(kind), .detail = detail}, bytes);
    }

    Random random_{3};
    Victim victim_{random_};
    TimePoint now_{std::chrono::seconds(1000)};
    std::unique_ptr<HostilePeer> peer_;
};

TEST_F(ShmRules, a_stream_that_exceeds_its_first_window_is_a_violation) {
    for (int i = 0; i < 9; ++i) {
        ASSERT_TRUE(write(shm::RecordKind::stream, 0, {0}, 8'000));
        now_ += 3ms;
        victim_.carrier->on_ready(now_);  // without events, so nobody opens the window
        victim_.carrier->on_ready(now_);
    }
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, a_stream_out_of_order_is_a_violation) {
    ASSERT_TRUE(write(shm::RecordKind::stream, 0, {1}, 10));
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, more_streams_than_allowed_are_a_violation) {
    for (std::uint64_t i = 0; i < 257; ++i) ASSERT_TRUE(write(shm::RecordKind::stream, 0, {i}));
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, bytes_after_the_end_of_a_stream_are_a_violation) {
    ASSERT_TRUE(write(shm::RecordKind::stream, 0, {0}, 100));
    ASSERT_TRUE(write(shm::RecordKind::stream, shm::kStreamEnds, {0}));
    ASSERT_TRUE(write(shm::RecordKind::stream, shm::kStreamEnds, {0}));
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, a_report_about_a_stream_that_was_never_sent_is_a_violation) {
    ASSERT_TRUE(write(shm::RecordKind::report, shm::kReportArrived, {0, 100}));
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, a_lane_that_does_not_exist_is_a_violation) {
    ASSERT_TRUE(write(shm::RecordKind::lane, 3, {0}));
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, a_record_longer_than_a_quarter_of_the_ring_is_a_violation) {
    peer_->writer.commit({.bytes = 16 * 1024 + 1, .kind = 1});
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, reading_what_was_never_written_is_a_violation) {
    peer_->own.control().taken.store(1'000'000);
    const std::vector<std::byte> bytes(600'000);
    const std::array<port::ConstBytes, 1> pieces{bytes};
    victim_.link->write(Lane::eager, pieces);
    victim_.turn(now_);
    EXPECT_TRUE(is_violated());
}

TEST_F(ShmRules, the_reason_of_a_peer_is_cut_and_escaped) {
    peer_->own.control().reason.fill('\x1b');
    peer_->own.control().reason_bytes = 0xffff'ffff;
    peer_->own.control().ended.store(1);
    ASSERT_TRUE(write(shm::RecordKind::goodbye, 0, {}));
    for (int i = 0; i < 3 && !victim_.down; ++i) victim_.turn(now_);
    ASSERT_TRUE(victim_.down.has_value());
    EXPECT_EQ(victim_.down->reason.code(), Errc::link_closed);
    EXPECT_EQ(victim_.down->reason.cause().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace nexar::testing
