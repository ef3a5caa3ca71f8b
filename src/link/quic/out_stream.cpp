#include "link/quic/out_stream.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace nexar::quic {

OutStream::OutStream(port::Lane lane, BufferPool& pool)
    : class_(link::write_class(lane)), staging_(true), staged_(pool) {}

OutStream::OutStream(port::StreamId id, port::Source& source, const port::StreamOptions& options,
                     BufferPool& pool)
    : source_(&source),
      id_(id),
      class_(link::write_class(options.priority)),
      prefix_bytes_(options.prefix.size()),
      regions_(source.regions()),
      size_(options.prefix.size() + source.size()),
      staging_(regions_.empty()),
      staged_(pool),
      region_begin_(options.prefix.size()) {
    NEXAR_ASSERT(options.prefix.size() <= prefix_.size());
    std::ranges::copy(options.prefix, prefix_.begin());
}

void OutStream::stage() {
    const std::uint64_t content = size_ - prefix_bytes_;
    while (!dropped && staged_.size() < kMaxStagedBytes && staged_.end() < content) {
        auto room = staged_.room();
        if (!room) return;  // without memory: treated like a source that has no bytes yet
        const auto wanted = std::min<std::uint64_t>(room->size(), content - staged_.end());
        const std::size_t n =
            source_->fill(staged_.end(), room->first(static_cast<std::size_t>(wanted)));
        NEXAR_ASSERT(n <= wanted);
        if (n == 0) {
            source_pending = true;
            return;
        }
        staged_.commit(n);
    }
}

// True if the regions have bytes to write, or if the end of the stream is due.
bool OutStream::readable() {
    const std::uint64_t content = size_ - prefix_bytes_;
    if (readable_ < content && !source_pending) {
        const std::uint64_t by_now = source_->ready();
        NEXAR_ASSERT(by_now >= readable_ && by_now <= content);
        readable_ = by_now;
        source_pending = next_ >= prefix_bytes_ + readable_ && readable_ < content;
    }
    return !source_pending || next_ < prefix_bytes_ + readable_;
}

bool OutStream::ready() {
    if (outcome || dropped) return false;
    if (end_written_) return false;
    if (is_lane()) return ending_ || next_ < staged_.end();
    if (!staging_) return readable();
    if (next_ < prefix_bytes_ || next_ == size_) return true;
    if (next_ - prefix_bytes_ == staged_.end() && !source_pending) stage();
    return next_ - prefix_bytes_ < staged_.end();
}

std::size_t OutStream::gather(std::span<port::ConstBytes> out, std::size_t limit) const noexcept {
    std::size_t used = 0;
    std::uint64_t at = next_;
    const auto add = [&](port::ConstBytes bytes) {
        bytes = bytes.first(std::min(bytes.size(), limit));
        if (bytes.empty()) return;
        out[used++] = bytes;
        at += bytes.size();
        limit -= bytes.size();
    };
    if (at < prefix_bytes_) {
        add(port::ConstBytes(prefix_).first(prefix_bytes_).subspan(static_cast<std::size_t>(at)));
        if (at < prefix_bytes_) return used;
    }
    if (staging_) {
        while (used < out.size() && limit != 0 && at - prefix_bytes_ < staged_.end()) {
            add(staged_.at(at - prefix_bytes_));
        }
        return used;
    }
    limit =
        static_cast<std::size_t>(std::min<std::uint64_t>(limit, prefix_bytes_ + readable_ - at));
    while (region_ < regions_.size() && region_begin_ + regions_[region_].size() <= at) {
        region_begin_ += regions_[region_++].size();
    }
    for (std::size_t i = region_; i < regions_.size() && used < out.size() && limit != 0; ++i) {
        const std::size_t skip =
            i == region_ ? static_cast<std::size_t>(at - region_begin_) : std::size_t{0};
        add(regions_[i].subspan(skip));
    }
    return used;
}

void OutStream::acknowledged(std::uint64_t offset) noexcept {
    NEXAR_ASSERT(offset >= acknowledged_ && offset <= next_);
    acknowledged_ = offset;
    if (staging_ && offset > prefix_bytes_) staged_.release_to(offset - prefix_bytes_);
}

std::vector<std::byte> OutStream::take_unacknowledged() {
    std::vector<std::byte> bytes;
    bytes.reserve(static_cast<std::size_t>(staged_.size()));
    for (std::uint64_t at = staged_.begin(); at < staged_.end();) {
        const port::ConstBytes piece = staged_.at(at);
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        at += piece.size();
    }
    staged_.clear();
    return bytes;
}

}  // namespace nexar::quic
