#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/assert.hpp"
#include "harness.hpp"
#include "support/quic_pair.hpp"

/// Two endpoints on virtual time with an attacker in between, who tampers with their packets as the
/// input says. Data that arrives must be correct, and a link that is up must survive: everything
/// sent arrives once the tampering ends.
///
/// Inputs that begin with 0 also tamper with the handshake of a new link, which takes milliseconds;
/// others use the link of earlier inputs. Three bytes follow for each packet: the act, the position
/// and the value.
namespace nexar::fuzz {

namespace {

using namespace std::chrono_literals;
using sim::Datagram;
using sim::DatagramNet;
using testing::LinkEnd;
using testing::pattern;
using testing::QuicPair;

constexpr int kUsesOfOneLink = 500;
/// Delayed packets make round trips look like a quarter of a second, and probe timeouts start at
/// several round trips.
constexpr Duration kIdle = 1h;
constexpr std::size_t kMessageBytes = 700;
constexpr std::size_t kPayloadBytes = 5000;

enum class Act : std::uint8_t { pass, drop, twice, late, flip, cut, lengthen, elsewhere, junk };
constexpr std::uint8_t kActs = 9;

/// Follows the orders in the input; when they end, everything passes.
class Tamperer {
public:
    Tamperer(DatagramNet& net, std::span<const std::byte> orders) : net_(&net), orders_(orders) {
        net.tap = [this](Datagram& datagram) { return on_datagram(datagram); };
    }
    ~Tamperer() { net_->tap = {}; }
    Tamperer(const Tamperer&) = delete;
    Tamperer& operator=(const Tamperer&) = delete;

private:
    bool on_datagram(Datagram& datagram) {
        if (orders_.size() < 3) return true;
        const auto act = static_cast<Act>(std::to_integer<std::uint8_t>(orders_[0]) % kActs);
        const auto place = std::to_integer<std::size_t>(orders_[1]);
        const std::byte value = orders_[2];
        orders_ = orders_.subspan(3);
        const bool lossy = act == Act::drop || act == Act::late || act == Act::flip ||
                           act == Act::cut || act == Act::lengthen;
        if (lossy && ++lost_ > kMostLost) return true;
        return tamper(datagram, act, place, value);
    }

    bool tamper(Datagram& datagram, Act act, std::size_t place, std::byte value) {
        const std::size_t at = datagram.bytes.size() * place / 256;
        switch (act) {
            case Act::pass:
                return true;
            case Act::drop:
                return false;
            case Act::twice:
                net_->inject(datagram, place * 100us);
                return true;
            case Act::late:
                net_->inject(datagram, place * 1ms);
                return false;
            case Act::flip:
                datagram.bytes[at] ^= value;
                return true;
            case Act::cut:
                datagram.bytes.resize(at);
                return at != 0;
            case Act::lengthen:
                datagram.bytes.resize(datagram.bytes.size() + place, value);
                return true;
            case Act::elsewhere:
                net_->inject(datagram, 50us);
                datagram.from = DatagramNet::address(200 + static_cast<unsigned>(place));
                return true;
            case Act::junk:
                break;
        }
        // Keeps the beginning of a packet, with its connection id, and replaces the rest.
        Datagram forged = datagram;
        for (std::size_t i = std::min<std::size_t>(place, forged.bytes.size());
             i < forged.bytes.size(); ++i) {
            forged.bytes[i] = value ^ static_cast<std::byte>(i);
        }
        net_->inject(std::move(forged), 10us);
        return true;
    }

    // The probe timeout doubles each time: after more losses it would exceed kIdle.
    static constexpr int kMostLost = 10;

    DatagramNet* net_;
    std::span<const std::byte> orders_;
    int lost_ = 0;
};

/// What one side sends to the other, and whether all of it arrived.
class Saying {
public:
    Saying(LinkEnd& from, LinkEnd& to, std::uint64_t seed)
        : from_(&from),
          to_(&to),
          message_(pattern(seed, kMessageBytes)),
          payload_(pattern(seed + 1, kPayloadBytes)),
          lane_before_(to.lane(port::Lane::eager).bytes.size()),
          streams_before_(to.opened().size()) {
        NEXAR_ASSERT(from.write(port::Lane::eager, message_));
        stream_ = from.send(payload_, {}, 3);
    }

    bool arrived() const {
        return from_->outcome(stream_).has_value() &&
               to_->lane(port::Lane::eager).bytes.size() == lane_before_ + kMessageBytes &&
               to_->opened().size() == streams_before_ + 1 &&
               to_->incoming(streams_before_).finished;
    }

    void check() const {
        const auto& lane = to_->lane(port::Lane::eager).bytes;
        NEXAR_ASSERT(std::equal(message_.begin(), message_.end(),
                                lane.begin() + static_cast<std::ptrdiff_t>(lane_before_)));
        NEXAR_ASSERT(to_->incoming(streams_before_).sink.bytes == payload_);
        NEXAR_ASSERT(from_->outcome(stream_) == port::SendOutcome::delivered);
    }

private:
    LinkEnd* from_;
    LinkEnd* to_;
    std::vector<std::byte> message_;
    std::vector<std::byte> payload_;
    std::size_t lane_before_;
    std::size_t streams_before_;
    port::StreamId stream_{};
};

/// Uses packets as on Ethernet: more of them, but each is cheaper to protect.
std::unique_ptr<QuicPair> made() {
    testing::PairOptions options;
    options.client.idle_timeout = kIdle;
    options.server.idle_timeout = kIdle;
    auto pair = std::make_unique<QuicPair>(options);
    pair->client_side.host().interface_limit = 1452;
    pair->server_side.host().interface_limit = 1452;
    return pair;
}

std::unique_ptr<QuicPair> connected() {
    auto pair = made();
    NEXAR_ASSERT(pair->connect());
    pair->world.run_for(100ms);
    return pair;
}

void talk(QuicPair& pair, std::span<const std::byte> orders) {
    const Tamperer tamperer(pair.net, orders);
    const std::uint64_t seed = orders.size();
    const Saying there(pair.client(), pair.server(), seed);
    const Saying back(pair.server(), pair.client(), seed + 2);
    const bool done = pair.run_until([&] { return there.arrived() && back.arrived(); }, 2 * kIdle);
    if (!done || !pair.client().is_up() || !pair.server().is_up()) {
        const auto tell = [&](const char* who, LinkEnd& end) {
            fmt::print(stderr, "{}: {}\n", who, end.down() ? end.down()->what() : "up");
        };
        tell("client", pair.client());
        tell("server", pair.server());
    }
    NEXAR_ASSERT(done && pair.client().is_up() && pair.server().is_up(),
                 "a link must survive tampering that ends");
    there.check();
    back.check();
}

}  // namespace

bool accepts_quic_pair(std::span<const std::byte> input) {
    if (input.empty()) return false;
    // Created here, so that the objects it depends on are created before it and destroyed after it.
    static std::unique_ptr<QuicPair> used = connected();
    static int uses = 0;
    const auto orders = input.subspan(1);
    if (input.front() != std::byte{0}) {
        if (++uses > kUsesOfOneLink) {
            used = connected();
            uses = 0;
        }
        talk(*used, orders);
        return true;
    }
    const auto owned = made();
    QuicPair& fresh = *owned;
    bool up = false;
    {
        const Tamperer tamperer(fresh.net, orders);
        up = fresh.connect(15s);
    }
    if (!up) {
        // The handshake may fail, but then it must end on both sides and leave nothing.
        fresh.run_until([&] { return fresh.client().down().has_value(); }, 60s);
        fresh.world.run_for(60s);
        NEXAR_ASSERT(fresh.client().down().has_value() || fresh.client().is_up());
        NEXAR_ASSERT(fresh.server_side.endpoint().half_open() == 0);
        return false;
    }
    talk(fresh, {});
    return true;
}

}  // namespace nexar::fuzz
