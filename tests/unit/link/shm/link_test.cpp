// What shared-memory links do beyond the contract suites.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>

#include "support/shm_pair.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using port::Lane;
using ::testing::HasSubstr;

bool readable(const port::Carrier& carrier) {
    pollfd descriptor{.fd = carrier.descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&descriptor, 1, 0) == 1;
}

// Two carriers that the test drives by hand; no virtual world.
class ShmLink : public ::testing::Test {
protected:
    struct End {
        std::unique_ptr<shm::Carrier> carrier = std::move(*shm::Carrier::open());
        port::Link* link = nullptr;
        port::LinkId id{};
        std::vector<port::LinkEvent> events{};
        std::array<CollectingSink, port::kLanes> lanes{};

        const port::Down* down() const {
            for (const auto& event : events) {
                if (const auto* found = std::get_if<port::Down>(&event.what)) return found;
            }
            return nullptr;
        }
        bool write(Lane lane, std::span<const std::byte> bytes) {
            const std::array<port::ConstBytes, 1> pieces{bytes};
            return link->write(lane, pieces);
        }
    };

    void SetUp() override {
        const auto invitation = a_.carrier->invite(now_, sim::Fabric::identity(2)).value();
        a_.id = invitation.link;
        b_.id = b_.carrier->accept(now_, sim::Fabric::identity(1), invitation.bytes).value();
        for (int i = 0; i < 3; ++i) turn();
        ASSERT_NE(a_.link, nullptr);
        ASSERT_NE(b_.link, nullptr);
    }
    void turn(End& end) {
        now_ += 3ms;
        end.carrier->on_ready(now_);
        end.carrier->flush(now_);
        while (auto event = end.carrier->poll_event()) {
            if (auto* up = std::get_if<port::Up>(&event->what)) {
                end.link = up->link;
                for (std::size_t i = 0; i < port::kLanes; ++i) {
                    end.link->receive(static_cast<Lane>(i), end.lanes[i]);
                }
            }
            end.events.push_back(std::move(*event));
        }
        end.carrier->flush(now_);
    }
    void turn() {
        turn(a_);
        turn(b_);
    }

    TimePoint now_{std::chrono::seconds(1000)};
    End a_;
    End b_;
};

TEST_F(ShmLink, a_sleeping_peer_is_woken_by_a_flush_and_only_then) {
    ASSERT_TRUE(b_.carrier->fall_asleep());
    EXPECT_FALSE(readable(*b_.carrier));
    ASSERT_TRUE(a_.write(Lane::eager, pattern(1, 8)));
    EXPECT_FALSE(readable(*b_.carrier)) << "write() only enqueues";
    a_.carrier->flush(now_);
    EXPECT_TRUE(readable(*b_.carrier));
    b_.carrier->wake_up();
    turn(b_);
    EXPECT_EQ(b_.lanes[2].bytes, pattern(1, 8));
    EXPECT_FALSE(readable(*b_.carrier)) << "the bell was taken";
}

TEST_F(ShmLink, a_peer_that_polls_is_not_woken) {
    ASSERT_TRUE(a_.write(Lane::eager, pattern(1, 8)));
    a_.carrier->flush(now_);
    EXPECT_FALSE(readable(*b_.carrier));
    turn(b_);
    EXPECT_EQ(b_.lanes[2].bytes, pattern(1, 8));
}

TEST_F(ShmLink, a_driver_does_not_fall_asleep_over_a_message) {
    ASSERT_TRUE(a_.write(Lane::eager, pattern(1, 8)));
    a_.carrier->flush(now_);
    EXPECT_FALSE(b_.carrier->fall_asleep());
    turn(b_);
    EXPECT_TRUE(b_.carrier->fall_asleep());
}

TEST_F(ShmLink, many_messages_ring_once_for_each_sleep) {
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(b_.carrier->fall_asleep());
        for (int i = 0; i < 50; ++i) {
            ASSERT_TRUE(a_.write(Lane::eager, pattern(1, 8)));
            a_.carrier->flush(now_);
        }
        ASSERT_TRUE(readable(*b_.carrier));
        b_.carrier->wake_up();
        turn(b_);
        EXPECT_FALSE(readable(*b_.carrier));
    }
}

TEST_F(ShmLink, a_writer_that_waits_for_room_is_woken_when_there_is_some) {
    const auto bytes = pattern(2, std::size_t{2} * 1024 * 1024);
    ASSERT_TRUE(a_.write(Lane::eager, bytes));
    a_.carrier->flush(now_);
    a_.carrier->flush(now_);
    a_.carrier->flush(now_);
    ASSERT_TRUE(a_.carrier->fall_asleep()) << "the ring is full";
    EXPECT_FALSE(readable(*a_.carrier));
    turn(b_);
    EXPECT_TRUE(readable(*a_.carrier));
    a_.carrier->wake_up();
    for (int i = 0; i < 40; ++i) turn();
    EXPECT_TRUE(b_.lanes[2].bytes == bytes);
}

TEST_F(ShmLink, a_writer_that_waits_for_room_goes_on_while_messages_keep_arriving) {
    const auto bytes = pattern(2, std::size_t{2} * 1024 * 1024);
    ASSERT_TRUE(a_.write(Lane::eager, bytes));
    for (int i = 0; i < 60; ++i) {
        ASSERT_TRUE(b_.write(Lane::eager, pattern(1, 8)));
        turn(b_);
        turn(a_);
    }
    EXPECT_TRUE(b_.lanes[2].bytes == bytes);
}

TEST_F(ShmLink, nudge_wakes_a_sleeping_peer) {
    a_.link->nudge();
    EXPECT_FALSE(readable(*b_.carrier));
    ASSERT_TRUE(b_.carrier->fall_asleep());
    a_.link->nudge();
    EXPECT_TRUE(readable(*b_.carrier));
}

TEST_F(ShmLink, shared_memory_is_read_in_place) {
    const auto memory = a_.carrier->allocate(10'000).value();
    ASSERT_EQ(memory->bytes().size(), 10'000U);
    EXPECT_EQ(memory->bytes()[9'999], std::byte{0});
    ASSERT_TRUE(a_.link->share(77, memory).has_value());
    a_.carrier->flush(now_);
    turn(b_);
    const auto* shared = std::get_if<port::Shared>(&b_.events.back().what);
    ASSERT_NE(shared, nullptr) << "a driver that polls notices it at once";
    EXPECT_EQ(shared->name, 77U);
    ASSERT_EQ(shared->memory->bytes().size(), 10'000U);
    memory->bytes()[9'999] = std::byte{5};
    EXPECT_EQ(shared->memory->bytes()[9'999], std::byte{5});
}

TEST_F(ShmLink, shared_memory_is_bounded) {
    std::vector<std::shared_ptr<port::SharedMemory>> kept;
    Result<void> shared;
    while (kept.size() <= 64 && shared.has_value()) {
        kept.push_back(a_.carrier->allocate(1).value());
        shared = a_.link->share(kept.size(), kept.back());
        turn();
    }
    ASSERT_FALSE(shared.has_value());
    EXPECT_EQ(kept.size(), 65U);
    EXPECT_THAT(shared.error().cause(), HasSubstr("already shares 64 pieces"));
    kept.clear();
    EXPECT_TRUE(a_.link->share(1, a_.carrier->allocate(1).value()).has_value());
    EXPECT_FALSE(a_.carrier->allocate(0).has_value());
    EXPECT_FALSE(a_.carrier->allocate(std::size_t{1} << 50U).has_value());
}

TEST_F(ShmLink, memory_of_another_kind_cannot_be_shared) {
    class Other final : public port::SharedMemory {
        port::Bytes bytes() noexcept override { return {}; }
    };
    EXPECT_EQ(a_.link->share(1, std::make_shared<Other>()).error().code(), Errc::invalid_argument);
}

TEST_F(ShmLink, down_has_the_bytes_that_were_not_taken_and_not_confirmed) {
    const auto first = pattern(1, 1'000);
    const auto second = pattern(2, 2'000);
    const auto third = pattern(3, 3'000'000);
    b_.lanes[1].allowance = 400;
    ASSERT_TRUE(a_.write(Lane::rpc, first));
    a_.carrier->flush(now_);
    turn(b_);
    turn(b_);
    ASSERT_TRUE(a_.write(Lane::rpc, second));
    ASSERT_TRUE(a_.write(Lane::eager, third));
    a_.carrier->flush(now_);
    // b's process ends: its carrier disappears without a word.
    a_.link->close("giving up");
    for (int i = 0; i < 2'000 && a_.down() == nullptr; ++i) turn(a_);
    ASSERT_NE(a_.down(), nullptr);
    const auto& unconfirmed = a_.down()->unconfirmed;
    EXPECT_EQ(unconfirmed[0].bytes.size(), 0U);
    EXPECT_EQ(unconfirmed[1].offset, 1'000U);
    EXPECT_EQ(unconfirmed[1].bytes, second);
    EXPECT_EQ(unconfirmed[2].offset, 0U);
    EXPECT_TRUE(unconfirmed[2].bytes == third);
    for (int i = 0; i < 100 && b_.down() == nullptr; ++i) turn(b_);
    ASSERT_NE(b_.down(), nullptr);
    EXPECT_FALSE(b_.down()->peer_gone);
    EXPECT_THAT(b_.down()->reason.cause(), HasSubstr("giving up"));
    const auto& untaken = b_.down()->untaken[1];
    EXPECT_EQ(untaken.offset, 400U);
    auto whole = b_.lanes[1].bytes;
    whole.insert(whole.end(), untaken.bytes.begin(), untaken.bytes.end());
    auto expected = first;
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(whole, expected);
}

TEST_F(ShmLink, the_end_of_a_carrier_is_not_taken_for_the_end_of_its_process) {
    b_.carrier.reset();
    for (int i = 0; i < 10 && a_.down() == nullptr; ++i) turn(a_);
    ASSERT_NE(a_.down(), nullptr);
    EXPECT_FALSE(a_.down()->peer_gone);
    EXPECT_EQ(a_.down()->reason.code(), Errc::link_closed);
}

TEST_F(ShmLink, lanes_pass_bulk) {
    const auto bulk = pattern(1, std::size_t{8} * 1024 * 1024);
    const std::array regions{port::ConstBytes(bulk)};
    port::MemorySource source(regions);
    a_.link->send(source, {});
    for (int i = 0; i < 5; ++i) turn();
    a_.carrier->flush(now_);
    ASSERT_TRUE(a_.write(Lane::control, pattern(2, 1'000)));
    a_.carrier->flush(now_);
    turn(b_);
    turn(b_);
    turn(b_);
    EXPECT_EQ(b_.lanes[0].bytes, pattern(2, 1'000)) << "streams leave room for lanes";
    a_.link->cancel(port::StreamId(0));
    turn(a_);
}

}  // namespace
}  // namespace nexar::testing
