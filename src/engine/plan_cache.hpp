#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "engine/plan.hpp"
#include "schedule/choice.hpp"

namespace nexar::engine {

/// The plans of the latest distinct calls of a communicator, with the choices that led to them.
class PlanCache {
public:
    static constexpr std::size_t kMost = 64;
    /// The most steps of all plans together: plans for large worlds are long.
    static constexpr std::size_t kMostSteps = std::size_t{1} << 18U;

    /// Everything that a plan depends on besides the communicator.
    struct Key {
        schedule::Collective operation{};
        std::uint32_t root = 0;
        std::uint64_t count = 0;
        std::uint32_t element_bytes = 1;
        bool commutative = true;
        bool in_place = false;

        friend auto operator<=>(const Key&, const Key&) noexcept = default;
    };
    struct Entry {
        schedule::Choice choice{};
        std::shared_ptr<const Plan> plan{};
        schedule::Slice result{};  // where the rank has its result
    };

    /// nullptr: the cache does not have it.
    const Entry* find(const Key& key) {
        if (last_ != order_.end() && last_->key == key) return &last_->entry;
        const auto found = places_.find(key);
        if (found == places_.end()) return nullptr;
        order_.splice(order_.begin(), order_, found->second);
        last_ = found->second;
        return &last_->entry;
    }

    void add(const Key& key, const Entry& entry) {
        order_.push_front({key, entry});
        places_[key] = last_ = order_.begin();
        steps_ += entry.plan->size();
        while (order_.size() > kMost || (steps_ > kMostSteps && order_.size() > 1)) {
            steps_ -= order_.back().entry.plan->size();
            places_.erase(order_.back().key);
            order_.pop_back();
        }
    }

    void clear() {
        order_.clear();
        places_.clear();
        last_ = order_.end();
        steps_ = 0;
    }

    std::size_t size() const noexcept { return order_.size(); }

private:
    struct Kept {
        Key key;
        Entry entry;
    };
    std::list<Kept> order_{};  // most recently used first
    std::list<Kept>::iterator last_ = order_.end();
    std::map<Key, std::list<Kept>::iterator> places_{};
    std::size_t steps_ = 0;
};

}  // namespace nexar::engine
