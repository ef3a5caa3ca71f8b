#pragma once

#include "base/assert.hpp"

namespace nexar::engine {

/// An object's place in one list. An object that is in several lists has one for each.
template <class T>
struct Hook {
    T* before = nullptr;
    T* after = nullptr;
};

/// Objects in the order in which they were added, linked through a member: the list allocates
/// nothing, and erasing costs the same anywhere. The owner of an object must erase it before
/// destroying it.
template <class T, Hook<T> T::* HookOf>
class IntrusiveList {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    T* first() const noexcept { return first_; }
    T* last() const noexcept { return last_; }
    static T* before(const T& object) noexcept { return (object.*HookOf).before; }
    static T* after(const T& object) noexcept { return (object.*HookOf).after; }

    void push_back(T& object) noexcept {
        Hook<T>& hook = object.*HookOf;
        hook = {.before = last_, .after = nullptr};
        (last_ == nullptr ? first_ : (last_->*HookOf).after) = &object;
        last_ = &object;
    }

    /// Inserts behind `place`, or at the front if that is nullptr.
    void insert_after(T* place, T& object) noexcept {
        T* const next = place == nullptr ? first_ : after(*place);
        (object.*HookOf) = {.before = place, .after = next};
        (place == nullptr ? first_ : (place->*HookOf).after) = &object;
        (next == nullptr ? last_ : (next->*HookOf).before) = &object;
    }

    void erase(T& object) noexcept {
        Hook<T>& hook = object.*HookOf;
        NEXAR_ASSERT(hook.before != nullptr || first_ == &object);
        (hook.before == nullptr ? first_ : (hook.before->*HookOf).after) = hook.after;
        (hook.after == nullptr ? last_ : (hook.after->*HookOf).before) = hook.before;
        hook = {};
    }

    T* pop_front() noexcept {
        T* object = first_;
        if (object != nullptr) erase(*object);
        return object;
    }

private:
    T* first_ = nullptr;
    T* last_ = nullptr;
};

}  // namespace nexar::engine
