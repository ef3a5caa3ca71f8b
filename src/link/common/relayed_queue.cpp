#include "link/common/relayed_queue.hpp"

#include <algorithm>
#include <utility>

namespace nexar::link {

RelayedQueue::RelayedQueue(std::size_t most) noexcept
    : most_(most), limit_(std::min(most, kLeastLimit)) {}

std::size_t RelayedQueue::room(std::size_t largest) const noexcept {
    const std::size_t left = limit_ - std::min(limit_, bytes_ + kOverheadBytes);
    return empty() ? std::max(left, largest) : left;
}

void RelayedQueue::push(port::ConstBytes datagram) {
    waiting_.push_back({.bytes = {datagram.begin(), datagram.end()}});
    bytes_ += datagram.size() + kOverheadBytes;
    ++fresh_;
}

void RelayedQueue::advance(TimePoint now) noexcept {
    for (auto at = waiting_.rbegin(); fresh_ != 0; ++at) {
        at->since = now;
        --fresh_;
    }
}

std::vector<std::byte> RelayedQueue::take(TimePoint now) {
    Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    fresh_ = std::min(fresh_, waiting_.size());
    adapt(now, first);
    bytes_ -= first.bytes.size() + kOverheadBytes;
    return std::move(first.bytes);
}

/// Halves the limit when a datagram has waited for too long, once for all that were waiting then.
/// While the limit is in use and they do not wait for long, it grows: quickly until a datagram has
/// waited for too long, and slowly afterwards.
void RelayedQueue::adapt(TimePoint now, const Waiting& sent) noexcept {
    constexpr std::size_t kSlower = 8;
    if (now - sent.since > kPatience) {
        if (sent.since < shrunk_at_) return;
        shrunk_at_ = now;
        limit_ = std::max(limit_ / 2, std::min(most_, kLeastLimit));
    } else if (bytes_ >= limit_ / 2) {
        const bool first = shrunk_at_ == TimePoint::min();
        limit_ = std::min(limit_ + sent.bytes.size() / (first ? 1 : kSlower), most_);
    }
}

void RelayedQueue::clear() noexcept {
    waiting_.clear();
    fresh_ = 0;
    bytes_ = 0;
}

}  // namespace nexar::link
