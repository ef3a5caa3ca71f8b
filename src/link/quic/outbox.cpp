#include "link/quic/outbox.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace nexar::quic {

namespace {
// Holds the bulk of one turn, so that it is sent in whole batches, and the packet being written.
constexpr std::size_t kBufferBytes = 4 * (Outbox::kLargestPacket + 1);
constexpr std::size_t kMaxSegments = 64;  // UDP_MAX_SEGMENTS of Linux
// The maximum that one sendmsg() accepts, with the headers of IPv6.
constexpr std::size_t kLargestBatch = 65535 - 48;
}  // namespace

Outbox::Outbox(PacketPath& path)
    : path_(&path), buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)) {}

std::size_t Outbox::batch_packets(std::size_t packet_bytes) noexcept {
    return std::clamp<std::size_t>(kLargestBatch / packet_bytes, 1, kMaxSegments);
}

bool Outbox::has_room() {
    if (!blocked_ && kBufferBytes - used_ < kLargestPacket) flush();
    return !blocked_;
}

std::span<std::byte> Outbox::room() noexcept {
    NEXAR_ASSERT(!blocked_ && kBufferBytes - used_ >= kLargestPacket);
    return {buffer_.get() + used_, kLargestPacket};
}

bool Outbox::joins(const Batch& batch, const Path& path, std::uint8_t ecn, std::size_t bytes,
                   bool alone) noexcept {
    return !batch.complete && !alone && bytes <= batch.segment && ecn == batch.ecn &&
           batch.end - batch.begin + bytes <= kLargestBatch && path == batch.path;
}

void Outbox::add(const Path& path, std::uint8_t ecn, std::size_t bytes, bool alone) {
    NEXAR_ASSERT(!blocked_ && bytes > 0 && bytes <= kLargestPacket);
    const std::size_t begin = used_;
    used_ += bytes;
    if (open_ && joins(*open_, path, ecn, bytes, alone)) {
        Batch& batch = *open_;
        batch.end += bytes;
        const std::size_t count = (batch.end - batch.begin + batch.segment - 1) / batch.segment;
        batch.complete = bytes < batch.segment || count == kMaxSegments;
        return;
    }
    const std::optional<Batch> before = open_;
    open_ = Batch{.path = path,
                  .begin = begin,
                  .end = used_,
                  .segment = bytes,
                  .ecn = ecn,
                  .complete = alone};
    if (before && !send(*before)) {
        waiting_ = before;
        blocked_ = true;
    }
}

bool Outbox::send(const Batch& batch) {
    return path_->send({.path = batch.path,
                        .bytes = {buffer_.get() + batch.begin, batch.end - batch.begin},
                        .segment_bytes = batch.segment,
                        .ecn = batch.ecn}) == PacketPath::Sent::done;
}

void Outbox::flush() {
    blocked_ = false;
    for (std::optional<Batch>* batch : {&waiting_, &open_}) {
        if (!*batch) continue;
        if (!send(**batch)) {
            blocked_ = true;
            return;
        }
        batch->reset();
    }
    used_ = 0;
}

}  // namespace nexar::quic
