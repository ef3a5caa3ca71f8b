#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "link/quic/packet_path.hpp"

namespace nexar::quic {

/// Collects packets into batches of equal packet size and passes them to the path. While the path
/// is blocked it keeps at most two batches and takes no more packets.
class Outbox {
public:
    /// Larger than every packet.
    static constexpr std::size_t kLargestPacket = 65535;

    /// The number of packets of this size in a full batch.
    static std::size_t batch_packets(std::size_t packet_bytes) noexcept;

    explicit Outbox(PacketPath& path);

    bool blocked() const noexcept { return blocked_; }

    /// See port::Carrier::set_crowded(): the receiver has no free processor to decrypt packets
    /// early.
    bool crowded() const noexcept { return crowded_; }
    void set_crowded(bool crowded) noexcept { crowded_ = crowded; }

    /// True if a packet may be written; sends the collected batch first if that makes room.
    bool has_room();

    /// The memory for the next packet, after has_room().
    std::span<std::byte> room() noexcept;

    /// Adds the packet of `bytes` bytes at room(). `alone`: it must not share a batch, because the
    /// path may refuse its size.
    void add(const Path& path, std::uint8_t ecn, std::size_t bytes, bool alone);

    /// Sends the collected batch, and retries a blocked one.
    void flush();

private:
    struct Batch {
        Path path{};
        std::size_t begin = 0;
        std::size_t end = 0;
        std::size_t segment = 0;
        std::uint8_t ecn = 0;
        bool complete = false;
    };

    static bool joins(const Batch& batch, const Path& path, std::uint8_t ecn, std::size_t bytes,
                      bool alone) noexcept;
    bool send(const Batch& batch);

    PacketPath* path_;
    std::unique_ptr<std::byte[]> buffer_;
    std::optional<Batch> waiting_{};  // complete, could not be sent
    std::optional<Batch> open_{};     // being collected
    std::size_t used_ = 0;
    bool blocked_ = false;
    bool crowded_ = false;
};

}  // namespace nexar::quic
