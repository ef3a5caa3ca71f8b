#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "link/quic/options.hpp"

namespace nexar::bench {

enum class Transport : std::uint8_t { tcp, tls, quic, api };

/// How a process waits: it sleeps, or it polls continuously.
enum class Waiting : std::uint8_t { sleeping, spinning };

/// One way to move bytes between the processes. The control channel transfers it as raw bytes.
struct Contender {
    Transport transport = Transport::tcp;
    Waiting waiting = Waiting::sleeping;

    // For QUIC only.
    std::size_t largest_datagram = 65000;
    quic::Protection protection = quic::Protection::full;
    bool gso = true;
    bool gro = true;
    bool batched = true;
    /// Sends through a path that loses datagrams; a loss of 0 uses the same path but loses none.
    bool lossy = false;
    double loss = 0;
    std::uint64_t loss_seed = 0;
};

struct NamedContender {
    std::string name{};
    Contender how{};
};

/// Statistics of one side of a connection; all 0 for transports without datagrams.
struct SideNotes {
    std::uint64_t datagram_bytes = 0;  // as discovered
    std::uint64_t datagrams_out = 0;
    std::uint64_t calls_out = 0;
    std::uint64_t datagrams_in = 0;
    std::uint64_t calls_in = 0;
    std::uint64_t gso_refused = 0;
    std::uint64_t lost_on_purpose = 0;
    std::uint64_t lost_in_send = 0;
    std::uint64_t lost_in_kernel = 0;  // the receive buffer was full
};

enum class Scenario : std::uint8_t { bulk, echo, bulk_and_echo, handshakes, leave };

/// The measurement in which the client asks the server to take part.
struct Order {
    Scenario task = Scenario::leave;
    Contender how{};
    std::size_t warm_up = 0;        // bulk messages before the measured ones
    std::size_t messages = 0;       // bulk messages; or handshakes
    std::size_t request_bytes = 0;  // for echo
};

/// The server's port on the loopback address.
struct Listening {
    std::uint16_t port = 0;
};

/// The server has received and checked all warm-up messages, and waits.
struct Ready {};

/// The server's view of the measured part, whose bytes it has checked.
struct Outcome {
    double finished_at = 0;  // seconds_now() when the last byte arrived
    double cpu_seconds = 0;
    SideNotes notes{};
};

}  // namespace nexar::bench
