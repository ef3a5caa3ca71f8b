#include "engine/address_race.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::engine {

void AddressRace::begin(TimePoint now, std::vector<Address> addresses, Duration last_after) {
    NEXAR_ASSERT(!running_ && attempts_.empty());
    running_ = true;
    addresses_ = std::move(addresses);
    last_after_ = last_after;
    next_ = 0;
    at_ = now;
    pass_began_at_ = now;
    repeat_at_ = now + std::min(options_.repeat_after, longest_wait_);
}

std::optional<AddressRace::Attempt> AddressRace::next(TimePoint now, bool may_repeat) {
    if (!running_) return std::nullopt;
    if (all_dialed() && dialing() && may_repeat && now >= repeat_at_) {
        next_ = 0;
        at_ = now;
        pass_began_at_ = now;
        repeat_at_ = now + std::min(options_.repeat_again_after, longest_wait_);
    }
    if (all_dialed() || (now < dial_at() && dialing())) return std::nullopt;
    const std::size_t place = next_++;
    return Attempt{.address = addresses_[place], .place = place};
}

/// When to dial the next address, or when to begin the next round.
TimePoint AddressRace::dial_at() const noexcept {
    const bool last = running_ && next_ + 1 == addresses_.size();
    return last ? std::max(at_, pass_began_at_ + last_after_) : at_;
}

std::optional<port::LinkId> AddressRace::dialed(TimePoint now, const Attempt& attempt,
                                                port::LinkId link) {
    at_ = now + options_.stagger;
    attempts_.push_back({.link = link, .place = attempt.place});
    const auto same = [&](const InFlight& one) { return one.place == attempt.place; };
    const auto count = static_cast<std::size_t>(std::ranges::count_if(attempts_, same));
    if (count <= options_.most_attempts) return std::nullopt;
    const auto oldest = std::ranges::find_if(attempts_, same);
    const port::LinkId surplus = oldest->link;
    attempts_.erase(oldest);
    return surplus;
}

void AddressRace::ended(port::LinkId link) {
    std::erase_if(attempts_, [&](const InFlight& one) { return one.link == link; });
}

void AddressRace::end_round(TimePoint now) {
    stop_until(now + std::min(next_pause_, longest_wait_));
    next_pause_ = std::min(2 * next_pause_, options_.longest_pause);
}

void AddressRace::stop_until(TimePoint at) noexcept {
    running_ = false;
    attempts_.clear();
    at_ = at;
}

void AddressRace::lengthen_pause(Duration at_least) noexcept {
    next_pause_ = std::max(next_pause_, at_least);
}

}  // namespace nexar::engine
