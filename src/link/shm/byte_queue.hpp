#pragma once

#include <cstddef>
#include <vector>

#include "port/stream.hpp"

namespace nexar::shm {

/// Bytes that wait: appended at the end, dropped from the beginning. Frees its memory when empty,
/// because most links and streams never need it.
class ByteQueue {
public:
    bool empty() const noexcept { return head_ == bytes_.size(); }
    std::size_t size() const noexcept { return bytes_.size() - head_; }
    port::ConstBytes view() const noexcept { return port::ConstBytes(bytes_).subspan(head_); }

    void append(port::ConstBytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    void drop(std::size_t bytes) {
        head_ += bytes;
        if (empty()) {
            clear();
        } else if (head_ * 2 >= bytes_.size()) {
            // On average this moves each byte at most once.
            bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
            head_ = 0;
        }
    }
    void clear() noexcept {
        std::vector<std::byte>().swap(bytes_);
        head_ = 0;
    }

private:
    std::vector<std::byte> bytes_;
    std::size_t head_ = 0;
};

}  // namespace nexar::shm
