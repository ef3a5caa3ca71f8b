#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "link/shm/layout.hpp"
#include "port/stream.hpp"

/// The ring of one direction: records, written by one process and read by another without locks.
///
/// A record is a head of 8 bytes and its content, rounded up to 8 bytes. A head of 0 means "nothing
/// yet". The writer stores the content, then 0 as the head of the next record, and then, with
/// release, the head of this one; the reader loads heads with acquire. So a reader that polls finds
/// a small message on the cache line that it polls, and there is no index that a hostile writer
/// could set to a wrong value. The reader publishes how far it has read in its Control::taken; the
/// writer always keeps 8 bytes free for the next head.
namespace nexar::shm {

inline constexpr std::size_t kHeadBytes = 8;

/// What a record is, and how many bytes of content it has.
struct RecordHead {
    std::uint32_t bytes = 0;
    std::uint8_t kind = 0;  // never 0
    std::uint8_t detail = 0;
    std::uint16_t zero = 0;

    static constexpr RecordHead from_word(std::uint64_t word) noexcept {
        return {.bytes = static_cast<std::uint32_t>(word),
                .kind = static_cast<std::uint8_t>(word >> 32U),
                .detail = static_cast<std::uint8_t>(word >> 40U),
                .zero = static_cast<std::uint16_t>(word >> 48U)};
    }
    constexpr std::uint64_t word() const noexcept {
        return std::uint64_t{bytes} | (std::uint64_t{kind} << 32U) |
               (std::uint64_t{detail} << 40U) | (std::uint64_t{zero} << 48U);
    }
};

/// Bytes that a record with `content` bytes takes in the ring.
constexpr std::size_t record_bytes(std::size_t content) noexcept {
    return kHeadBytes + ((content + 7) & ~std::size_t{7});
}

/// The largest content of a record: two records always fit.
constexpr std::size_t max_content(std::size_t ring_bytes) noexcept {
    return ring_bytes / 4;
}

class RingWriter {
public:
    RingWriter() noexcept = default;
    /// `taken` is how far the reader has read: a word of the reader.
    RingWriter(std::byte* ring, std::size_t ring_bytes, const SharedWord* taken) noexcept
        : ring_(ring), size_(ring_bytes), taken_(taken) {}

    /// True if a record with `content` bytes fits and leaves `reserve` bytes. Looks at the reader's
    /// progress only if the room known so far is not enough.
    bool has_room(std::size_t content, std::size_t reserve = 0) noexcept {
        const std::size_t wanted = record_bytes(content) + kHeadBytes + reserve;
        if (wanted <= free()) return true;
        look();
        return wanted <= free();
    }
    /// Bytes of content that fit into one record that leaves `reserve` bytes.
    std::size_t room(std::size_t reserve = 0) noexcept {
        const std::size_t taken_up = 2 * kHeadBytes + reserve;
        return free() < taken_up ? 0 : (free() - taken_up) & ~std::size_t{7};
    }
    /// Reads how far the reader is. Returns true if it has advanced.
    bool look() noexcept {
        const std::uint64_t taken = taken_->load(std::memory_order_acquire);
        if (taken == read_) return false;
        if (taken > written_ || taken < read_ || taken % kHeadBytes != 0) {
            broken_ = true;
            return false;
        }
        read_ = taken;
        return true;
    }
    /// True if the reader claimed to have read what was never written, or went back.
    bool broken() const noexcept { return broken_; }

    /// Where the content of the next record goes; there must be room for it.
    std::byte* content() const noexcept { return at(written_) + kHeadBytes; }

    /// Publishes a record whose content has been stored.
    void commit(RecordHead head) noexcept {
        const std::uint64_t next = written_ + record_bytes(head.bytes);
        word(next).store(0, std::memory_order_relaxed);
        word(written_).store(head.word(), std::memory_order_release);
        written_ = next;
    }

    std::uint64_t written() const noexcept { return written_; }
    std::uint64_t read() const noexcept { return read_; }
    bool all_read() noexcept {
        look();
        return read_ == written_;
    }
    std::size_t size() const noexcept { return size_; }

    /// A record that was written at `position` and not yet overwritten.
    RecordHead head_at(std::uint64_t position) const noexcept {
        return RecordHead::from_word(word(position).load(std::memory_order_relaxed));
    }
    const std::byte* content_at(std::uint64_t position) const noexcept {
        return at(position) + kHeadBytes;
    }

private:
    std::size_t free() const noexcept { return size_ - static_cast<std::size_t>(written_ - read_); }
    std::byte* at(std::uint64_t position) const noexcept {
        return ring_ + (position & (size_ - 1));
    }
    SharedWord& word(std::uint64_t position) const noexcept {
        return *reinterpret_cast<SharedWord*>(at(position));
    }

    std::byte* ring_ = nullptr;
    std::size_t size_ = 0;
    const SharedWord* taken_ = nullptr;
    std::uint64_t written_ = 0;
    std::uint64_t read_ = 0;  // by the reader, as far as known
    bool broken_ = false;
};

class RingReader {
public:
    RingReader() noexcept = default;
    RingReader(const std::byte* ring, std::size_t ring_bytes) noexcept
        : ring_(ring), size_(ring_bytes) {}

    bool arrived() const noexcept { return head_word() != 0; }

    /// The head of the next record; `kind` is 0 if there is none. The content may be read if
    /// `bytes` is at most max_content(size).
    RecordHead head() const noexcept { return RecordHead::from_word(head_word()); }
    port::ConstBytes content(RecordHead head) const noexcept {
        return {at() + kHeadBytes, head.bytes};
    }
    /// Goes on to the next record.
    void skip(RecordHead head) noexcept { read_ += record_bytes(head.bytes); }

    std::uint64_t read() const noexcept { return read_; }
    std::size_t size() const noexcept { return size_; }

private:
    const std::byte* at() const noexcept { return ring_ + (read_ & (size_ - 1)); }
    std::uint64_t head_word() const noexcept {
        return reinterpret_cast<const SharedWord*>(at())->load(std::memory_order_acquire);
    }

    const std::byte* ring_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t read_ = 0;
};

}  // namespace nexar::shm
