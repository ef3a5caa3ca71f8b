#include "engine/mesh_path.hpp"

#include <algorithm>
#include <utility>

namespace nexar::engine {

namespace {

/// An attempt that fails sooner has not waited for an answer: the link cannot move now.
constexpr Duration kLeastAttempt = std::chrono::milliseconds(10);

}  // namespace

void MeshPath::set_home(TimePoint now, bool direct, std::vector<Address> addresses) {
    direct_home_ = direct;
    addresses_ = std::move(addresses);
    if (!direct) untried_.clear();
    if (!may_move()) return;
    pause_ = options_.pause;
    next_at_ = TimePoint::max();
    if (!away()) return;
    if (dialed_) {
        next_at_ = now;
    } else if (direct_home_) {
        request_ = true;
    }
}

void MeshPath::begin(TimePoint now, port::Link& link, bool dialed) {
    end();
    link_ = &link;
    dialed_ = dialed;
    movable_ = link.remote() != Address{};
    in_tunnel_ = link.remote().is_tunnel();
    arrived_at_ = now;
    pause_ = options_.pause;
    // Not at once: a new connection has not exchanged what it needs for a move.
    if (may_move() && dialed_ && away()) next_at_ = now + pause_;
}

void MeshPath::end() noexcept {
    link_ = nullptr;
    target_.reset();
    untried_.clear();
    next_at_ = TimePoint::max();
    request_.reset();
}

bool MeshPath::leave(TimePoint now) {
    const bool nowhere = in_tunnel_ && (!direct_home_ || addresses_.empty());
    if (!may_move() || nowhere) return false;
    if (!dialed_) {
        request_ = in_tunnel_;
    } else if (!moving()) {
        start(now);
    }
    return true;
}

void MeshPath::asked(TimePoint now, bool direct) {
    if (!may_move() || !dialed_ || moving()) return;
    const bool useless = direct != in_tunnel_ || (direct && !direct_home_);
    if (useless || now < started_at_ + kBetweenRequests) return;
    pause_ = options_.pause;
    start(now);
}

/// Begins to move the link to the other path.
void MeshPath::start(TimePoint now) {
    started_at_ = now;
    untried_.clear();
    if (in_tunnel_) {
        untried_.assign(addresses_.rbegin(), addresses_.rend());
    } else {
        untried_.push_back(tunnel_);
    }
    try_next(now);
}

void MeshPath::try_next(TimePoint now) {
    target_.reset();
    if (untried_.empty()) return pause(now);
    target_ = untried_.back();
    untried_.pop_back();
    ends_at_ = now + options_.patience;
    link_->move_to(*target_);
}

/// Waits before the next attempt to return.
void MeshPath::pause(TimePoint now) {
    next_at_ = TimePoint::max();
    if (!dialed_ || !away()) return;
    next_at_ = now + pause_;
    pause_ = std::min(2 * pause_, options_.longest_pause);
}

void MeshPath::on_changed(TimePoint now, const Address& remote) {
    if (link_ == nullptr) return;
    const bool same = remote.is_tunnel() == in_tunnel_;
    if (same && target_ != remote) return;
    in_tunnel_ = remote.is_tunnel();
    target_.reset();
    untried_.clear();
    // A path that fails again and again is tried less and less often.
    const bool was_stable = now >= arrived_at_ + options_.longest_pause;
    if (away() && was_stable) pause_ = options_.pause;
    arrived_at_ = now;
    if (options_.moves) pause(now);
}

void MeshPath::on_failed(TimePoint now, const Address& remote) {
    if (link_ == nullptr || target_ != remote) return;
    // The first answer through a tunnel may take long, because processors are busy or the peer
    // cannot answer yet.
    const TimePoint began_at = ends_at_ - options_.patience;
    const bool waited = now >= began_at + kLeastAttempt;
    if (!in_tunnel_ && waited && now < started_at_ + options_.insistence)
        untried_.push_back(tunnel_);
    try_next(now);
}

void MeshPath::turn(TimePoint now) {
    if (now < due()) return;
    if (moving()) {
        try_next(now);
    } else {
        start(now);
    }
}

TimePoint MeshPath::due() const noexcept {
    return moving() ? ends_at_ : next_at_;
}

}  // namespace nexar::engine
