#pragma once

#include <limits>

namespace nexar {

/// Threads that can have a number of their own at the same time.
inline constexpr unsigned kThreadIndexes = 1024;

namespace detail {
inline constexpr unsigned kNoThreadIndex = std::numeric_limits<unsigned>::max();
extern thread_local constinit unsigned this_thread_index;
unsigned take_thread_index() noexcept;
}  // namespace detail

/// A small number that this thread shares with no other living one: the lowest that was free when
/// the thread first asked. When a thread ends, its number goes to a later thread, which then sees
/// everything that the former one did; so memory indexed by it has one writer at a time.
///
/// kThreadIndexes, which several threads may see, stands for "none left", and for a thread that is
/// already running the destructors of its thread_local objects.
inline unsigned thread_index() noexcept {
    const unsigned index = detail::this_thread_index;
    return index != detail::kNoThreadIndex ? index : detail::take_thread_index();
}

}  // namespace nexar
