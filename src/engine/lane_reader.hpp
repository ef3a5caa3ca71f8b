#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/result.hpp>
#include <utility>

#include "engine/frame_reader.hpp"
#include "port/stream.hpp"
#include "wire/limits.hpp"

namespace nexar::engine {

/// A lane as it arrives on one link: preambles, each followed by a part of the lane. Several of
/// them feed one FrameReader, which takes each byte of the lane once and in order: a reader whose
/// part comes later waits for the others.
class LaneReader final : public port::Sink {
public:
    using Taker = FrameReader::Taker;

    /// For a lane that begins on this link.
    LaneReader(wire::Lane lane, Taker& taker)
        : owned_(std::make_unique<FrameReader>(lane, taker)), frames_(owned_.get()) {}
    /// For a further link of a peer; `frames` must outlive it.
    explicit LaneReader(FrameReader& frames) noexcept : frames_(&frames) {}

    /// Passes on the frame reader, which must outlive this object.
    std::unique_ptr<FrameReader> release_frames() noexcept { return std::move(owned_); }
    FrameReader& frames() noexcept { return *frames_; }

    /// See FrameReader.
    void hand_to(Taker& taker) noexcept { frames_->hand_to(taker); }
    void skip(const PayloadReceiver& receiver) noexcept { frames_->skip(receiver); }

    /// True if write() stopped because earlier bytes of the lane were missing.
    bool waits() const noexcept { return waits_; }
    /// Returns true once if it waits and they have arrived: the link's sink must be woken.
    bool stops_waiting() noexcept {
        return waits_ && position_ <= frames_->position() && std::exchange(waits_, false);
    }

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

private:
    Result<std::size_t> take_preamble(port::ConstBytes bytes);

    std::unique_ptr<FrameReader> owned_;
    FrameReader* frames_;
    bool started_ = false;  // the preamble was read
    bool over_ = false;     // what arrives here is dropped
    bool waits_ = false;    // for other links to bring earlier bytes
    std::uint64_t position_ = 0;
    std::array<std::byte, wire::kBulkPreambleBytes> preamble_{};
    std::size_t preamble_bytes_ = 0;
};

}  // namespace nexar::engine
