#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "base/view.hpp"

namespace nexar::chaos {

/// The machines of a cluster and the paths between them, as the faults made them: what the rules
/// may expect depends on it. Machine 0 has the seed.
class Conditions {
public:
    struct Machine {
        bool running = false;
        NodeId node{};  // of its process, once that was admitted
        int pauses = 0;
        int slow = 0;
    };

    explicit Conditions(std::size_t machines)
        : machines_(machines),
          cuts_(machines * machines),
          last_bad_(machines * machines, TimePoint::min()) {}

    std::size_t size() const noexcept { return machines_.size(); }
    const Machine& at(std::size_t machine) const { return machines_[machine]; }

    /// Changes something. Everything that is bad before or after the change is bad at that time.
    template <class Change>
    void change(TimePoint now, Change&& change) {
        note(now);
        change();
        note(now);
    }
    // Within change(). Several faults may do the same to a machine or a path; each is undone once.
    Machine& machine(std::size_t machine) { return machines_[machine]; }
    void cut(std::size_t from, std::size_t to, bool cut) {
        cuts_[from * size() + to] += cut ? 1 : -1;
    }
    void storm(bool storm) { storms_ += storm ? 1 : -1; }
    /// Undoes everything but kills.
    void calm();

    bool is_cut(std::size_t from, std::size_t to) const { return cuts_[from * size() + to] > 0; }
    bool is_storm() const noexcept { return storms_ > 0; }

    /// The two processes ran undisturbed and reached each other all the time since then.
    bool good_since(std::size_t a, std::size_t b, TimePoint since) const {
        return !bad(a, b) && last_bad_[a * size() + b] < since;
    }
    /// Nothing has disturbed anybody since then; `now` if something does.
    TimePoint quiet_since(TimePoint now) const { return disturbed() ? now : last_disturbed_; }
    /// Something happened to the cluster that its members must handle.
    void disturb(TimePoint now) { last_disturbed_ = now; }

    static constexpr std::size_t kNone = ~std::size_t{0};
    /// The machine whose process is this node.
    std::size_t machine_of(const NodeId& node) const;

private:
    bool bad(std::size_t a, std::size_t b) const;
    bool disturbed() const;
    void note(TimePoint now);

    std::vector<Machine> machines_;
    std::vector<int> cuts_;  // from * size + to: how many faults cut it
    int storms_ = 0;
    std::vector<TimePoint> last_bad_;
    TimePoint last_disturbed_ = TimePoint::min();
};

}  // namespace nexar::chaos
