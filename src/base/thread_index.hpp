#pragma once

#include <limits>

namespace nexar {

/// How many threads can have a number of their own at the same time.
inline constexpr unsigned kThreadIndexes = 1024;

namespace detail {
inline constexpr unsigned kNoThreadIndex = std::numeric_limits<unsigned>::max();
extern thread_local constinit unsigned this_thread_index;
unsigned take_thread_index() noexcept;
}  // namespace detail

/// A small number that no other live thread has: the lowest that was free at the thread's first
/// call. When a thread ends, a later thread may get its number, and then sees everything that the
/// earlier one wrote; so memory indexed by it has one writer at a time.
///
/// Returns kThreadIndexes, possibly to several threads, if none is left or if the thread is already
/// running the destructors of its thread_local objects.
inline unsigned thread_index() noexcept {
    const unsigned index = detail::this_thread_index;
    return index != detail::kNoThreadIndex ? index : detail::take_thread_index();
}

}  // namespace nexar
