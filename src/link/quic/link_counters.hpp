#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>

#include "base/counter_registry.hpp"
#include "link/quic/endpoint.hpp"
#include "link/quic/udp_socket.hpp"

namespace nexar::quic {

/// Shows what an endpoint and its socket count to the node's registry, under names that begin with
/// `quic_` and `udp_`.
class LinkCounters {
public:
    static constexpr std::size_t kCounters = 18;

    /// Fails as CounterRegistry::add() does. `registry` must outlive it.
    static Result<LinkCounters> add_to(CounterRegistry& registry);

    /// Adds what was counted since the last call.
    void publish(const EndpointCounts& endpoint, const UdpCounts& udp) noexcept;

private:
    LinkCounters() = default;

    std::array<Counter*, kCounters> counters_{};
    std::array<std::uint64_t, kCounters> published_{};
};

}  // namespace nexar::quic
