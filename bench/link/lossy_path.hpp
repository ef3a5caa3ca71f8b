#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "link/quic/packet_path.hpp"

namespace nexar::bench {

/// Loses each datagram independently with the same probability; the same seed loses the same
/// datagrams.
class LossyPath final : public quic::PacketPath {
public:
    /// `out` must outlive it.
    LossyPath(quic::PacketPath& out, double probability, std::uint64_t seed)
        : out_(&out), probability_(probability), random_(seed) {}

    Sent send(const quic::PacketBatch& batch) override;
    std::size_t largest_datagram(const Address& remote) override {
        return out_->largest_datagram(remote);
    }

    std::uint64_t lost() const noexcept { return lost_; }

private:
    struct Run {
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    void decide(const quic::PacketBatch& batch);

    quic::PacketPath* out_;
    double probability_;
    Random random_;
    std::uint64_t lost_ = 0;
    // The surviving parts of the current batch, and how many of them are sent: a blocked batch is
    // passed in again, and its losses must not be decided again.
    std::vector<Run> runs_;
    std::size_t sent_runs_ = 0;
    bool decided_ = false;
};

}  // namespace nexar::bench
