#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.hpp"
#include "base/pool_profile.hpp"
#include "base/random.hpp"
#include "harness.hpp"
#include "link/quic/endpoint.hpp"
#include "quic_initial.hpp"
#include "support/test_cluster.hpp"

/// Everything that a stranger can send to an endpoint before authentication.
///
/// The first byte of an input determines the treatment of the rest. Bit 0: it is the content of an
/// Initial packet, which the harness protects with the publicly known keys. Bit 1: the harness pads
/// a shorter datagram to 1200 bytes, the minimum that starts a handshake.
namespace nexar::fuzz {

namespace {

using namespace std::chrono_literals;
using testing::TestCluster;

constexpr std::byte kSealed{1};
constexpr std::byte kFilled{2};
constexpr std::size_t kLeastDatagram = 1200;

/// Counts the answers.
class CountingPath final : public quic::PacketPath {
public:
    Sent send(const quic::PacketBatch& batch) override {
        bytes += batch.bytes.size();
        return Sent::done;
    }
    std::size_t largest_datagram(const Address& /*remote*/) override { return 1452; }

    std::size_t bytes = 0;
};

std::shared_ptr<const security::Credentials> credentials() {
    static const auto shared = TestCluster().node(1);
    return shared;
}

quic::EndpointOptions options(Random& random) {
    quic::EndpointOptions chosen;
    chosen.credentials = credentials();
    chosen.random = [&random](std::span<std::uint8_t> out) {
        for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(random.next() >> 56U);
    };
    return chosen;
}

Bytes datagram_of(std::span<const std::byte> input) {
    const std::byte mode = input.front();
    const auto rest = input.subspan(1);
    if ((mode & kSealed) != std::byte{0}) return seal_initial(rest);
    Bytes datagram(rest.begin(), rest.end());
    if ((mode & kFilled) != std::byte{0}) {
        datagram.resize(std::max(datagram.size(), kLeastDatagram));
    }
    return datagram;
}

/// An endpoint that receives only from strangers. Kept across inputs, since creating one costs more
/// than most inputs; between two inputs enough time passes to refill all budgets.
class Stranded {
public:
    /// True if a handshake was started.
    bool receive(std::span<const std::byte> datagram) {
        now_ += 20s;
        out_.bytes = 0;
        const std::uint64_t accepted = endpoint_.counts().accepted;
        const std::size_t most = 6 * datagram.size();
        // Twice: a packet that started a handshake must be found again by its id.
        for (int i = 0; i < 2 && !datagram.empty(); ++i) {
            endpoint_.receive(now_, path_, 0, datagram, datagram.size());
            endpoint_.flush(now_);
        }
        NEXAR_ASSERT(out_.bytes <= most,
                     "a stranger must not get more than three times what it sent");
        NEXAR_ASSERT(endpoint_.connections() <= 2);
        wait_until_alone();
        NEXAR_ASSERT(out_.bytes <= most, "nor with retransmissions");
        take_events();
        return endpoint_.counts().accepted != accepted;
    }

private:
    void take_events() {
        while (const auto event = endpoint_.poll_event()) {
            NEXAR_ASSERT(std::holds_alternative<port::Refused>(event->what),
                         "nobody may be admitted");
        }
    }

    void wait_until_alone() {
        const TimePoint limit = now_ + 10s;
        for (int turns = 0; endpoint_.connections() != 0; ++turns) {
            NEXAR_ASSERT(turns < 200, "a silent stranger must be forgotten");
            take_events();
            now_ = std::max(now_, endpoint_.next_deadline().value_or(limit));
            endpoint_.flush(now_);
        }
        NEXAR_ASSERT(now_ <= limit && endpoint_.half_open() == 0);
    }

    Random random_{1};
    BufferPool pool_{PoolProfile::inference()};
    CountingPath out_;
    quic::Endpoint endpoint_{out_, pool_, options(random_)};
    quic::Path path_{.local = Address::parse("10.0.0.1:7400").value(),
                     .remote = Address::parse("10.0.0.2:7400").value()};
    TimePoint now_{1000s};
};

}  // namespace

bool accepts_quic_datagram(std::span<const std::byte> input) {
    if (input.empty()) return false;
    static Stranded place;
    return place.receive(datagram_of(input));
}

}  // namespace nexar::fuzz
