#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "base/address.hpp"
#include "link/quic/packet_path.hpp"

namespace nexar::quic {

struct UdpOptions {
    /// Bytes that the kernel buffers while we compute. The socket requests them and logs a warning
    /// if the kernel grants less.
    std::size_t receive_buffer = std::size_t{8} * 1024 * 1024;
    std::size_t send_buffer = std::size_t{4} * 1024 * 1024;
    /// Turned off only to measure their effect.
    bool gso = true;
    bool gro = true;
    bool batched = true;  // sendmmsg and recvmmsg
};

struct UdpCounts {
    std::uint64_t datagrams_out = 0;
    std::uint64_t calls_out = 0;
    std::uint64_t datagrams_in = 0;
    std::uint64_t calls_in = 0;
    std::uint64_t too_large = 0;     // EMSGSIZE: larger than the path allows
    std::uint64_t gso_refused = 0;   // batches sent again one by one
    std::uint64_t lost_in_send = 0;  // any other error, treated as loss
    std::uint64_t icmp_errors = 0;   // reports about earlier datagrams
};

/// A non-blocking UDP socket: sends batches in one call where the kernel and the device can, and
/// receives them merged. It learns by trying what a path cannot do, and remembers it.
class UdpSocket final : public PacketPath {
public:
    /// `local` may be "any", and its port 0: the kernel chooses.
    static Result<std::unique_ptr<UdpSocket>> open(const Address& local, const UdpOptions& options);

    ~UdpSocket() override;
    UdpSocket(const UdpSocket&) = delete;
    UdpSocket& operator=(const UdpSocket&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    const Address& local() const noexcept { return habits_.bound; }
    const UdpCounts& counts() const noexcept { return counts_; }

    Sent send(const PacketBatch& batch) override;
    std::size_t largest_datagram(const Address& remote) override;

    struct Arrival {
        Path path{};
        std::uint8_t ecn = 0;
        std::span<const std::byte> bytes{};
        std::size_t segment_bytes = 0;
    };

    /// Reads arrived datagrams, up to about `limit` bytes, and calls `take` for each batch, whose
    /// bytes are valid until it returns. Returns true if the limit stopped it.
    bool receive(std::size_t limit, const std::function<void(const Arrival&)>& take);

    /// A datagram that the target's host refused because no process listens at that port. ICMP can
    /// be forged.
    struct Refusal {
        Address remote{};                    // where the datagram was sent to
        std::array<std::byte, 64> quoted{};  // its beginning
        std::size_t bytes = 0;               // of `quoted`; a few routers quote nothing
    };

    /// The refusals that send() or receive() found, at most 64.
    bool has_refusals() const noexcept { return !refusals_.empty(); }
    void take_refusals(const std::function<void(const Refusal&)>& take);

private:
    friend struct OutMessage;

    /// The defaults for outgoing datagrams.
    struct Habits {
        Address bound{};
        std::uint8_t ecn = 0;
    };

    UdpSocket(int descriptor, const Address& local, const UdpOptions& options);

    Result<void> configure();
    Result<void> bind();
    void mark_all();
    void ask_for_buffers();
    void ask_for_buffer(int option, int force, std::size_t wanted, const char* sysctl);

    Sent send_merged(const PacketBatch& batch);
    Sent send_single(const PacketBatch& batch, std::size_t from);
    bool merges(const Address& remote) const noexcept;
    void ask_for_errors(bool v4);
    /// Reads a bounded number of error reports; returns how many there were.
    std::size_t drain_errors() noexcept;
    /// Repeats a call that failed with the error of another datagram.
    template <class Call>
    auto past_errors(Call call);

    struct Receiver;
    struct Sender;

    int descriptor_;
    Habits habits_;
    UdpOptions options_;
    UdpCounts counts_;
    std::vector<Address> no_gso_;  // hosts to which it failed
    std::unique_ptr<Receiver> receiver_;
    std::unique_ptr<Sender> sender_;
    std::size_t sent_of_batch_ = 0;  // of a batch that was blocked halfway
    std::vector<Refusal> refusals_;
};

}  // namespace nexar::quic
