#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace nexar::engine {

/// An object's place in a KeyedQueues.
template <class T>
struct KeyedHook {
    T* before = nullptr;
    T* after = nullptr;
    T* last = nullptr;  // set only in the first object of a queue
};

/// A queue per key; objects are linked through a member, and `KeyOf` returns their key. The cost of
/// finding the first object of a key, adding and removing does not depend on the number of keys and
/// objects. With thousands of objects cache misses dominate, so the table stores the hash next to
/// the pointer (open addressing, linear probing, no tombstones). Allocates only when there are more
/// keys at once than ever before.
template <class T, KeyedHook<T> T::* HookOf, class KeyOf>
class KeyedQueues {
public:
    using Key = std::remove_cvref_t<decltype(KeyOf{}(std::declval<const T&>()))>;

    /// `seed` keeps a peer from choosing keys that all collide.
    explicit KeyedQueues(std::uint64_t seed) : seed_(seed), places_(16) {}

    KeyedQueues(const KeyedQueues&) = delete;
    KeyedQueues& operator=(const KeyedQueues&) = delete;
    /// Does not touch objects that are still queued.
    ~KeyedQueues() = default;

    /// The oldest object of a key, or nullptr.
    T* first(const Key& key) const noexcept { return places_[find(key)].first; }

    void push_back(T& object) {
        const Key key = KeyOf{}(object);
        KeyedHook<T>& hook = object.*HookOf;
        Place* place = &places_[find(key)];
        if (place->first != nullptr) {
            T*& last = (place->first->*HookOf).last;
            hook = {.before = last, .after = nullptr, .last = nullptr};
            (last->*HookOf).after = &object;
            last = &object;
            return;
        }
        if (++keys_ > places_.size() / 4 * 3) {
            grow();
            place = &places_[find(key)];
        }
        hook = {.before = nullptr, .after = nullptr, .last = &object};
        *place = {.hash = key.hash(seed_), .first = &object};
    }

    void erase(T& object) noexcept {
        KeyedHook<T>& hook = object.*HookOf;
        if (hook.before == nullptr) {
            erase_first(object);
        } else {
            (hook.before->*HookOf).after = hook.after;
            if (hook.after == nullptr) {
                (first(KeyOf{}(object))->*HookOf).last = hook.before;
            } else {
                (hook.after->*HookOf).before = hook.before;
            }
        }
        hook = {};
    }

    std::size_t keys() const noexcept { return keys_; }

    /// Calls `visit` with every object; those of one key in order, and keys in any order.
    template <class Visit>
    void for_each(Visit visit) const {
        for (const Place& place : places_) {
            for (T* at = place.first; at != nullptr; at = (at->*HookOf).after) visit(*at);
        }
    }

private:
    struct Place {
        std::uint64_t hash = 0;
        T* first = nullptr;  // of a queue; nullptr: free
    };

    std::size_t wrapped(std::size_t index) const noexcept { return index & (places_.size() - 1); }

    /// The place of the key, or the place where it would go. At least a quarter of all places is
    /// free.
    std::size_t find(const Key& key) const noexcept {
        const std::uint64_t hash = key.hash(seed_);
        std::size_t at = wrapped(hash);
        while (places_[at].first != nullptr &&
               !(places_[at].hash == hash && KeyOf{}(*places_[at].first) == key)) {
            at = wrapped(at + 1);
        }
        return at;
    }

    void erase_first(T& object) noexcept {
        std::size_t at = wrapped(KeyOf{}(object).hash(seed_));
        while (places_[at].first != &object) at = wrapped(at + 1);
        const KeyedHook<T>& hook = object.*HookOf;
        if (hook.after == nullptr) {
            free_place(at);
            return;
        }
        KeyedHook<T>& next = hook.after->*HookOf;
        next.before = nullptr;
        next.last = hook.last;
        places_[at].first = hook.after;
    }

    /// Frees a place, and moves up the entries behind it so that searches still reach them.
    void free_place(std::size_t gap) noexcept {
        --keys_;
        for (std::size_t at = wrapped(gap + 1); places_[at].first != nullptr;
             at = wrapped(at + 1)) {
            const std::size_t home = wrapped(places_[at].hash);
            if (wrapped(at - home) < wrapped(at - gap)) continue;
            places_[gap] = places_[at];
            gap = at;
        }
        places_[gap] = {};
    }

    void grow() {
        const std::vector<Place> before =
            std::exchange(places_, std::vector<Place>(places_.size() * 2));
        for (const Place& place : before) {
            if (place.first == nullptr) continue;
            std::size_t at = wrapped(place.hash);
            while (places_[at].first != nullptr) at = wrapped(at + 1);
            places_[at] = place;
        }
    }

    std::uint64_t seed_;
    std::size_t keys_ = 0;
    std::vector<Place> places_;  // their number is a power of two
};

}  // namespace nexar::engine
