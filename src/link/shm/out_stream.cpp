#include "link/shm/out_stream.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace nexar::shm {

OutStream::OutStream(port::StreamId id, port::Source& source, const port::StreamOptions& options,
                     std::uint64_t first_window)
    : source_(&source),
      id_(id),
      class_(link::write_class(options.priority)),
      prefix_bytes_(options.prefix.size()),
      regions_(source.regions()),
      size_(options.prefix.size() + source.size()),
      readable_(options.prefix.size()),
      limit_(first_window) {
    NEXAR_ASSERT(options.prefix.size() <= prefix_.size());
    std::ranges::copy(options.prefix, prefix_.begin());
}

bool OutStream::ready() noexcept {
    if (cancelled || end_written) return false;
    if (sent_ == size_) return true;
    if (sent_ >= limit_) return false;
    if (sent_ < readable_) return true;
    if (source_pending) return false;
    if (regions_.empty()) {
        readable_ = size_;  // fill() tells how much there is
        return true;
    }
    const std::uint64_t readable = prefix_bytes_ + source_->ready();
    NEXAR_ASSERT(readable >= readable_ && readable <= size_, "ready() can only grow, up to size()");
    readable_ = readable;
    source_pending = sent_ == readable_;
    return !source_pending;
}

std::uint64_t OutStream::sendable() const noexcept {
    const std::uint64_t end = std::min(readable_, limit_);
    return end - std::min(end, sent_);
}

std::size_t OutStream::copy_to(std::byte* place, std::size_t most) noexcept {
    most = static_cast<std::size_t>(std::min<std::uint64_t>(most, sendable()));
    std::size_t copied = 0;
    if (sent_ < prefix_bytes_) {
        const auto at = static_cast<std::size_t>(sent_);
        copied = std::min(most, prefix_bytes_ - at);
        std::memcpy(place, prefix_.data() + at, copied);
    }
    if (regions_.empty()) {
        if (copied < most) {
            const std::uint64_t offset = sent_ + copied - prefix_bytes_;
            const std::size_t got = source_->fill(offset, {place + copied, most - copied});
            NEXAR_ASSERT(got <= most - copied, "a source cannot fill more than its buffer");
            copied += got;
            if (got == 0) {
                source_pending = true;
                readable_ = sent_ + copied;
            }
        }
        sent_ += copied;
        return copied;
    }
    while (copied < most) {
        const port::ConstBytes rest = regions_[region_].subspan(in_region_);
        const std::size_t piece = std::min(most - copied, rest.size());
        std::memcpy(place + copied, rest.data(), piece);
        copied += piece;
        in_region_ += piece;
        if (in_region_ == regions_[region_].size() && region_ + 1 < regions_.size()) {
            ++region_;
            in_region_ = 0;
        }
    }
    sent_ += copied;
    return copied;
}

}  // namespace nexar::shm
