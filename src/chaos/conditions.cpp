#include "chaos/conditions.hpp"

#include <algorithm>

namespace nexar::chaos {

bool Conditions::bad(std::size_t a, std::size_t b) const {
    const auto ill = [&](std::size_t machine) {
        const Machine& one = machines_[machine];
        return !one.running || one.pauses > 0 || one.slow > 0;
    };
    return storms_ > 0 || ill(a) || ill(b) || is_cut(a, b) || is_cut(b, a);
}

bool Conditions::disturbed() const {
    const auto ill = [](const Machine& one) { return one.pauses > 0 || one.slow > 0; };
    return storms_ > 0 || !machines_.front().running || std::ranges::any_of(machines_, ill) ||
           std::ranges::any_of(cuts_, [](int cuts) { return cuts > 0; });
}

void Conditions::note(TimePoint now) {
    if (disturbed()) last_disturbed_ = now;
    for (std::size_t a = 0; a < size(); ++a) {
        for (std::size_t b = 0; b < size(); ++b) {
            if (bad(a, b)) last_bad_[a * size() + b] = now;
        }
    }
}

void Conditions::calm() {
    for (Machine& one : machines_) one.pauses = one.slow = 0;
    std::ranges::fill(cuts_, 0);
    storms_ = 0;
}

std::size_t Conditions::machine_of(const NodeId& node) const {
    const auto found = std::ranges::find_if(
        machines_, [&](const Machine& one) { return one.running && one.node == node; });
    return found == machines_.end() ? kNone : static_cast<std::size_t>(found - machines_.begin());
}

}  // namespace nexar::chaos
