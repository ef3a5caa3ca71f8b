#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "sim/ring_cluster.hpp"
#include "wire/plain_envelope.hpp"

namespace nexar::testing {

/// What a relay does with the packets of others.
enum class Hostility : std::uint8_t {
    none,
    drops_all,
    drops_half,
    reorders,
    repeats,
    alters_some,
    alters_all,
    alters_choices,  // of the envelopes, which say which way the source wants
    replays,         // old packets instead of new ones
    everything,      // at random
};
std::string_view name(Hostility hostility) noexcept;

/// Takes the envelopes that arrive at one node of a ring for others, and sends its neighbours
/// whatever it likes instead of what the node would forward.
class HostileRelay {
public:
    /// Hostile from turn_to() on, until its destruction.
    HostileRelay(RingCluster& cluster, std::uint32_t rank, std::uint64_t seed);
    ~HostileRelay();
    HostileRelay(const HostileRelay&) = delete;
    HostileRelay& operator=(const HostileRelay&) = delete;

    void turn_to(Hostility hostility) noexcept { hostility_ = hostility; }

    /// Envelopes that arrived for others.
    std::size_t taken() const noexcept { return taken_; }
    /// Of those, the ones that it did not forward once, soon and unchanged.
    std::size_t mistreated() const noexcept { return mistreated_; }

private:
    using Datagram = std::vector<std::byte>;

    bool take(port::LinkEvent& event);
    void treat(Hostility hostility, std::uint32_t to, const Datagram& datagram);
    void pass(std::uint32_t to, const Datagram& datagram);
    void pass_later(std::uint32_t to, const Datagram& datagram, Duration delay);
    void pass_altered(std::uint32_t to, Datagram datagram);
    void pass_with_another_choice(std::uint32_t to, Datagram datagram);
    void replay(std::uint32_t to, const Datagram& datagram);

    RingCluster* cluster_;
    std::uint32_t rank_;
    Random random_;
    Hostility hostility_ = Hostility::none;
    std::vector<Datagram> kept_{};  // to replay
    std::size_t taken_ = 0;
    std::size_t mistreated_ = 0;
};

/// The envelope in a datagram of an event that is for another rank; nullopt: it is something else.
std::optional<wire::EnvelopeView> relayed_envelope(const port::LinkEvent& event,
                                                   std::uint32_t rank);

}  // namespace nexar::testing
