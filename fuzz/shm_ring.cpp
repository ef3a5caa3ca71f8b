#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "harness.hpp"
#include "port/memory.hpp"
#include "unit/link/shm/hostile_peer.hpp"

/// A shared-memory link against a peer that writes what the input says into its own memory.
///
/// The input is a list of acts, each a byte and its operands; see Act.
namespace nexar::fuzz {

namespace {

using namespace std::chrono_literals;
using testing::HostilePeer;

enum class Act : std::uint8_t {
    record,     // kind, detail, content bytes (2), content: a record
    bare_head,  // 8 bytes: a head without content
    scribble,   // offset (2), bytes (1), content: anywhere in the ring
    taken,      // 8 bytes
    take_some,  // words (1): the peer has read that many more words
    sleep,      // 4 bytes
    ended,      // bytes of the reason (4)
    turn,       // the victim takes a turn
    write,      // lane, bytes (2): the victim writes
    send,       // the victim sends a stream
    cancel,     // stream
    sink,       // bits: 1 takes nothing, 2 does not open windows, 4 refuses; wakes all sinks
    close,      // the victim closes the link
    hang_up,    // the peer closes its socket
    message,    // bytes (1), content: over the socket
};
constexpr std::uint8_t kActs = 15;

class Input {
public:
    explicit Input(std::span<const std::byte> bytes) : bytes_(bytes) {}
    bool empty() const noexcept { return bytes_.empty(); }
    std::span<const std::byte> take(std::size_t n) {
        const auto taken = bytes_.first(std::min(n, bytes_.size()));
        bytes_ = bytes_.subspan(taken.size());
        return taken;
    }
    std::uint64_t number(std::size_t width) {
        std::uint64_t value = 0;
        const auto bytes = take(width);
        if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }

private:
    std::span<const std::byte> bytes_;
};

/// Reads everything it is given.
class ReadingSink final : public port::Sink {
public:
    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override {
        NEXAR_ASSERT(offset == taken);
        for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
        const std::size_t took = *full ? bytes.size() / 2 : bytes.size();
        taken += took;
        return took;
    }
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }
    const bool* full = nullptr;
    std::uint64_t taken = 0;
    unsigned sum = 0;
};

class Victim {
public:
    explicit Victim(shm::Carrier& carrier) : carrier_(&carrier) {
        for (ReadingSink& lane : lanes_) lane.full = &full;
    }

    void turn(TimePoint& now) {
        now += 3ms;
        if (carrier_->fall_asleep()) carrier_->wake_up();
        carrier_->on_ready(now);
        carrier_->flush(now);
        while (auto event = carrier_->poll_event()) handle(*event);
        carrier_->flush(now);
    }

    port::Link* link = nullptr;
    std::optional<port::Down> down{};
    bool full = false;
    bool opens = true;
    bool refuses = false;
    std::size_t sent = 0;
    std::size_t released = 0;
    port::MemorySource& source() noexcept { return source_; }
    std::map<std::uint64_t, ReadingSink> sinks{};

private:
    void handle(port::LinkEvent& event) {
        NEXAR_ASSERT(!down, "Down must be the last event");
        if (auto* up = std::get_if<port::Up>(&event.what)) {
            link = up->link;
            for (std::size_t i = 0; i < port::kLanes; ++i) {
                link->receive(static_cast<port::Lane>(i), lanes_[i]);
            }
        } else if (auto* opened = std::get_if<port::Opened>(&event.what)) {
            ReadingSink& sink = sinks[opened->stream.value()];
            sink.full = &full;
            if (refuses) {
                link->refuse(opened->stream);
                return;
            }
            link->receive(opened->stream, sink);
            if (opens) link->open_window(opened->stream);
        } else if (std::holds_alternative<port::Released>(event.what)) {
            ++released;
        } else if (auto* ended = std::get_if<port::Down>(&event.what)) {
            down = std::move(*ended);
            link = nullptr;
            carrier_->forget(event.link);
        }
    }

    shm::Carrier* carrier_;
    std::array<ReadingSink, port::kLanes> lanes_{};
    std::vector<std::byte> content_ = std::vector<std::byte>(80'000, std::byte{4});
    std::array<port::ConstBytes, 1> regions_{port::ConstBytes(content_)};
    port::MemorySource source_{regions_};
};

void play(Act act, Input& input, HostilePeer& peer, Victim& victim, TimePoint& now) {
    shm::Control& control = peer.own.control();
    switch (act) {
        case Act::record: {
            const auto kind = static_cast<std::uint8_t>(input.number(1));
            const auto detail = static_cast<std::uint8_t>(input.number(1));
            const auto bytes = std::min<std::uint64_t>(input.number(2), 16'384);
            const auto shown = input.take(std::min<std::size_t>(bytes, 64));
            std::vector<std::byte> content(shown.begin(), shown.end());
            content.resize(static_cast<std::size_t>(bytes));
            peer.write({.kind = kind, .detail = detail}, content);
            break;
        }
        case Act::bare_head:
            if (peer.writer.has_room(16'384)) {
                peer.writer.commit(shm::RecordHead::from_word(input.number(8)));
            }
            break;
        case Act::scribble: {
            const auto offset = static_cast<std::size_t>(input.number(2));
            const auto bytes = input.take(static_cast<std::size_t>(input.number(1)));
            if (!bytes.empty()) std::memcpy(peer.own.ring() + offset, bytes.data(), bytes.size());
            break;
        }
        case Act::taken:
            control.taken.store(input.number(8));
            break;
        case Act::take_some:
            control.taken.store(control.taken.load() + 8 * input.number(1));
            break;
        case Act::sleep:
            control.sleep.store(static_cast<std::uint32_t>(input.number(4)));
            break;
        case Act::ended:
            control.reason_bytes = static_cast<std::uint32_t>(input.number(4));
            control.ended.store(1);
            break;
        case Act::turn:
            victim.turn(now);
            break;
        case Act::write: {
            const auto lane = static_cast<port::Lane>(input.number(1) % port::kLanes);
            const std::vector<std::byte> bytes(static_cast<std::size_t>(input.number(2)));
            const std::array<port::ConstBytes, 1> pieces{bytes};
            if (victim.link != nullptr) victim.link->write(lane, pieces);
            break;
        }
        case Act::send:
            if (victim.link == nullptr) break;
            victim.link->send(victim.source(), {});
            ++victim.sent;
            break;
        case Act::cancel:
            if (victim.link != nullptr) victim.link->cancel(port::StreamId(input.number(1)));
            break;
        case Act::sink: {
            const std::uint64_t bits = input.number(1);
            victim.full = (bits & 1U) != 0;
            victim.opens = (bits & 2U) == 0;
            victim.refuses = (bits & 4U) != 0;
            if (victim.link == nullptr) break;
            for (std::size_t i = 0; i < port::kLanes; ++i) {
                victim.link->wake_sink(static_cast<port::Lane>(i));
            }
            for (const auto& [stream, sink] : victim.sinks) {
                victim.link->wake_sink(port::StreamId(stream));
            }
            break;
        }
        case Act::close:
            if (victim.link != nullptr) victim.link->close("enough");
            break;
        case Act::hang_up:
            peer.socket = Descriptor();
            break;
        case Act::message: {
            const auto bytes = input.take(static_cast<std::size_t>(input.number(1)));
            if (peer.socket) shm::send_message(peer.socket.number(), bytes);
            break;
        }
    }
}

}  // namespace

/// True if the link did not end by a violation.
bool accepts_shm_ring(std::span<const std::byte> bytes) {
    static const auto carrier = std::move(*shm::Carrier::open());
    static TimePoint now(1000s);
    auto peer = HostilePeer::join(*carrier, now);
    NEXAR_ASSERT(peer != nullptr, "an honest handshake succeeds after every hostile peer");
    Victim victim(*carrier);
    victim.turn(now);
    Input input(bytes);
    while (!input.empty() && !victim.down) {
        play(static_cast<Act>(input.number(1) % kActs), input, *peer, victim, now);
    }
    for (int i = 0; i < 3 && !victim.down; ++i) victim.turn(now);
    const bool violated = victim.down && victim.down->reason.code() == Errc::protocol_violation;
    peer.reset();
    for (int i = 0; i < 10 && !victim.down; ++i) victim.turn(now);
    NEXAR_ASSERT(victim.down.has_value(), "a link ends when its peer is gone");
    NEXAR_ASSERT(victim.released == victim.sent, "every send is released");
    return !violated;
}

}  // namespace nexar::fuzz
