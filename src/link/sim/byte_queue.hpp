#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "port/stream.hpp"

namespace nexar::sim {

/// The bytes of a stream between two offsets, in contiguous memory: appended at the end, dropped
/// from the beginning. An append invalidates views.
class ByteQueue {
public:
    std::uint64_t begin() const noexcept { return begin_; }
    std::uint64_t end() const noexcept { return begin_ + (bytes_.size() - head_); }

    void append(port::ConstBytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

    /// Appends `n` bytes for the caller to fill in; see shorten().
    port::Bytes extend(std::size_t n) {
        bytes_.resize(bytes_.size() + n);
        return port::Bytes(bytes_).last(n);
    }
    /// Removes the last `n` bytes that extend() appended.
    void shorten(std::size_t n) { bytes_.resize(bytes_.size() - n); }

    port::ConstBytes view(std::uint64_t from, std::uint64_t to) const noexcept {
        NEXAR_ASSERT(from >= begin_ && from <= to && to <= end());
        return port::ConstBytes(bytes_).subspan(head_ + static_cast<std::size_t>(from - begin_),
                                                static_cast<std::size_t>(to - from));
    }

    void drop_to(std::uint64_t offset) {
        NEXAR_ASSERT(offset >= begin_ && offset <= end());
        head_ += static_cast<std::size_t>(offset - begin_);
        begin_ = offset;
        // On average this moves each byte at most once.
        if (head_ * 2 < bytes_.size()) return;
        bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
        head_ = 0;
    }

private:
    std::vector<std::byte> bytes_;
    std::size_t head_ = 0;
    std::uint64_t begin_ = 0;
};

}  // namespace nexar::sim
