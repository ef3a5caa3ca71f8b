#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "contender.hpp"
#include "control.hpp"
#include "message_ring.hpp"
#include "party.hpp"
#include "quic_side.hpp"
#include "side.hpp"

namespace nexar::bench {

/// The result of one repetition of a bulk transfer.
struct BulkTrial {
    double gb_per_s = 0;
    double client_cpu_per_gb = 0;  // seconds
    double server_cpu_per_gb = 0;
    SideNotes client{};
    SideNotes server{};
    std::vector<double> request_times{};  // seconds; of requests during the transfer
};

/// The client's part of every measurement: one call is one repetition over its own connection.
/// Throws nexar::Error, with the server's message if the server failed.
class Trials {
public:
    /// All arguments must outlive it. `ring` must be filled.
    Trials(Control& control, const Party& party, MessageRing& ring)
        : control_(&control), party_(&party), ring_(&ring) {}

    BulkTrial bulk(const Contender& how, std::size_t messages);
    BulkTrial bulk_with_requests(const Contender& how, std::size_t messages,
                                 const RequestPlan& plan);

    /// Times of requests, in seconds.
    std::vector<double> ping(const Contender& how, const PingPlan& plan);

    /// Performs sequential handshakes and returns how long each took until both sides had
    /// authenticated each other, in seconds.
    std::vector<double> handshakes(std::size_t count);

    /// The number of bulk messages that take about `seconds`, estimated with a short transfer.
    std::size_t messages_for(const Contender& how, double seconds);

private:
    std::unique_ptr<QuicSide> dial_quic(const Contender& how);
    std::unique_ptr<Side> dial(const Contender& how);
    template <class Send>
    BulkTrial measure_bulk(Side& side, std::size_t messages, Send&& send);

    Control* control_;
    const Party* party_;
    MessageRing* ring_;
};

}  // namespace nexar::bench
