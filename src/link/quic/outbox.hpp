#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "link/quic/packet_path.hpp"

namespace nexar::quic {

/// Collects written packets into batches of equal size and hands them to the path. When the path is
/// blocked it keeps what it has, at most two batches, and takes no more.
class Outbox {
public:
    /// Every packet fits.
    static constexpr std::size_t kLargestPacket = 65535;

    /// How many packets of a size make a full batch.
    static std::size_t batch_packets(std::size_t packet_bytes) noexcept;

    explicit Outbox(PacketPath& path);

    bool blocked() const noexcept { return blocked_; }

    /// Whether packets are sent to somebody who has no processor to open them with right now.
    bool crowded() const noexcept { return crowded_; }
    void set_crowded(bool crowded) noexcept { crowded_ = crowded; }

    /// Whether a packet may be written; sends what was collected if that is what it takes.
    bool has_room();

    /// Where the next packet may be written, after has_room().
    std::span<std::byte> room() noexcept;

    /// A packet of `bytes` bytes stands at room(). `alone`: it must not share a batch, since the
    /// path may refuse it for its size.
    void add(const Path& path, std::uint8_t ecn, std::size_t bytes, bool alone);

    /// Sends what was collected, or tries again what was blocked.
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
