#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/out_stream.hpp"
#include "engine/payload_receiver.hpp"
#include "port/stream.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

class PeerTransfers;

/// The bytes of a lane that a broken link did not deliver, on their way over a payload stream of
/// another link.
class LaneTailOut final : public OutStream {
public:
    LaneTailOut(PeerTransfers& owner, std::vector<std::byte> bytes)
        : owner_(&owner), bytes_(std::move(bytes)), regions_{port::ConstBytes(bytes_)} {}

    std::uint64_t size() const noexcept override { return bytes_.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return regions_; }
    void released(port::SendOutcome outcome) override;

private:
    PeerTransfers* owner_;
    std::vector<std::byte> bytes_;
    std::array<port::ConstBytes, 1> regions_;
};

/// The same at the receiver. Bytes that the broken link delivered are skipped.
class LaneTailIn final : public PayloadReceiver {
public:
    LaneTailIn(PeerTransfers& owner, port::Lane lane, std::uint64_t position) noexcept
        : owner_(&owner), lane_(lane), position_(position) {
        bytes = kUnknownBytes;
    }

    port::Lane lane() const noexcept { return lane_; }
    std::uint64_t position() const noexcept { return position_; }

    std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept override;
    void attached() override;
    void finished(std::uint64_t came) override;
    void aborted() override;
    bool outlives_link() const noexcept override { return true; }

private:
    PeerTransfers* owner_;
    port::Lane lane_;
    std::uint64_t position_;
};

}  // namespace nexar::engine
