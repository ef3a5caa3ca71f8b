#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <vector>

#include "base/time.hpp"
#include "port/stream.hpp"

namespace nexar::link {

/// The datagrams of other members that wait until a link takes them: see port::Link::send_relayed.
///
/// They come from queues that drop what has waited for too long, so this one is short in time as
/// well as in bytes: on a slow link its limit shrinks until nothing waits for much longer than
/// kPatience, and it grows again when the link is faster.
class RelayedQueue {
public:
    static constexpr Duration kPatience = std::chrono::milliseconds(10);
    /// The limit at first, and the least one unless `most` is smaller.
    static constexpr std::size_t kLeastLimit = std::size_t{16} * 1024;
    /// The memory of a datagram besides its bytes.
    static constexpr std::size_t kOverheadBytes = 64;

    /// `most`: bytes that may wait, memory included.
    explicit RelayedQueue(std::size_t most) noexcept;

    /// The size of the largest datagram that push() takes now. An empty queue takes every datagram
    /// of up to `largest` bytes.
    std::size_t room(std::size_t largest) const noexcept;
    /// Copies the datagram, which must fit.
    void push(port::ConstBytes datagram);

    bool empty() const noexcept { return waiting_.empty(); }
    std::size_t bytes() const noexcept { return bytes_; }
    std::size_t limit() const noexcept { return limit_; }

    /// Datagrams that were pushed since the last call begin to wait at `now`.
    void advance(TimePoint now) noexcept;
    /// The oldest datagram.
    const std::vector<std::byte>& front() const noexcept { return waiting_.front().bytes; }
    /// Removes the oldest datagram, which the link sends or drops.
    std::vector<std::byte> take(TimePoint now);

    void clear() noexcept;

private:
    struct Waiting {
        std::vector<std::byte> bytes{};
        TimePoint since = TimePoint::max();  // unknown until advance()
    };

    void adapt(TimePoint now, const Waiting& sent) noexcept;

    std::size_t most_;
    std::size_t limit_;
    std::list<Waiting> waiting_{};  // takes no memory while empty: most links forward nothing
    std::size_t fresh_ = 0;         // at the end of waiting_, pushed since advance()
    std::size_t bytes_ = 0;         // with the overhead
    TimePoint shrunk_at_ = TimePoint::min();
};

}  // namespace nexar::link
