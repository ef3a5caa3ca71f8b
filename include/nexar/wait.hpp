#pragma once

#include <chrono>
#include <cstddef>
#include <nexar/work.hpp>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

/// Functions that wait for several works.

namespace nexar {

namespace detail {

template <class W>
inline constexpr bool is_work = false;
template <class T>
inline constexpr bool is_work<Work<T>> = true;

template <class R>
concept Works = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                is_work<std::ranges::range_value_t<R>>;

template <class R>
using ValueOf = decltype(std::declval<std::ranges::range_value_t<R>&>().wait());

/// The works that are not empty, with their indices.
struct Started {
    std::vector<Task*> tasks{};
    std::vector<std::size_t> places{};
};
template <Works R>
Started started(R& works) {
    Started found;
    std::size_t place = 0;
    for (const auto& work : works) {
        if (work.valid()) {
            found.tasks.push_back(work.task());
            found.places.push_back(place);
        }
        ++place;
    }
    return found;
}

template <class T>
void await(const Work<T>& work) {
    if (work.valid()) wait(*work.task(), nullptr);
}

inline Deadline deadline_after(std::chrono::nanoseconds duration) {
    return std::chrono::steady_clock::now() +
           std::chrono::ceil<std::chrono::steady_clock::duration>(duration);
}

template <Works R>
std::optional<std::size_t> wait_any(R& works, const Deadline* deadline) {
    const Started found = started(works);
    if (found.tasks.empty()) return std::nullopt;
    const std::size_t ended = wait_any(found.tasks, deadline);
    if (ended == found.tasks.size()) return std::nullopt;
    return found.places[ended];
}

template <Works R>
std::vector<std::size_t> wait_some(R& works, const Deadline* deadline) {
    std::vector<std::size_t> ended;
    if (!wait_any(works, deadline)) return ended;
    std::size_t place = 0;
    for (const auto& work : works) {
        if (work.valid() && work.done()) ended.push_back(place);
        ++place;
    }
    return ended;
}

}  // namespace detail

/// Waits for all works of a vector, array or span, then returns their values, or throws the first
/// error in list order. A list of Work<> may also hold receives: a Work<Status> converts to Work<>.
/// See Work for the value of an empty one.
template <detail::Works R>
auto wait_all(R&& works) {
    using T = detail::ValueOf<R>;
    for (auto& work : works) detail::await(work);
    std::optional<Error> first;
    const auto look = [&first](const auto& outcome) {
        if (!outcome && !first) first = outcome.error();
    };
    if constexpr (std::is_void_v<T>) {
        for (auto& work : works) look(work.result());
        if (first) throw Error(*first);
    } else {
        std::vector<T> values;
        values.reserve(std::ranges::size(works));
        for (auto& work : works) {
            auto outcome = work.result();
            look(outcome);
            if (outcome) values.push_back(*std::move(outcome));
        }
        if (first) throw Error(*first);
        return values;
    }
}

/// Waits for all these works, which may be of different types, then throws the first error in
/// argument order, if any. Works with a value keep it: their wait() returns it at once.
///
///     nexar::wait_all(world.send(right, to), world.recv(left, from));
template <class... W>
    requires(sizeof...(W) > 0 && (detail::is_work<std::remove_cvref_t<W>> && ...))
void wait_all(W&&... works) {
    static_assert(((std::is_lvalue_reference_v<W> ||
                    detail::is_ignorable<decltype(std::declval<W&>().wait())>) &&
                   ...),
                  "nexar: the result of this operation is lost; keep its Work in a variable");
    (detail::await(works), ...);
    std::optional<Error> first;
    const auto look = [&first](const auto& work) {
        if (!work.valid()) return;
        const auto& failure = detail::error(*work.task());
        if (failure && !first) first = *failure;
    };
    (look(works), ...);
    if (first) throw Error(*first);
}

/// Waits until a work completes and returns its index. Ignores empty works; returns nullopt if all
/// are empty or the list is.
template <detail::Works R>
std::optional<std::size_t> wait_any(R&& works) {
    return detail::wait_any(works, nullptr);
}
/// The same with a deadline or a timeout; also returns nullopt when it has passed.
template <detail::Works R>
std::optional<std::size_t> wait_any(R&& works, std::chrono::steady_clock::time_point deadline) {
    return detail::wait_any(works, &deadline);
}
template <detail::Works R, class Rep, class Period>
std::optional<std::size_t> wait_any(R&& works, std::chrono::duration<Rep, Period> duration) {
    return nexar::wait_any(works, detail::deadline_after(duration));
}

/// Waits until at least one work completes and returns the indices of all that have. Returns an
/// empty list where wait_any() returns nullopt.
template <detail::Works R>
std::vector<std::size_t> wait_some(R&& works) {
    return detail::wait_some(works, nullptr);
}
template <detail::Works R>
std::vector<std::size_t> wait_some(R&& works, std::chrono::steady_clock::time_point deadline) {
    return detail::wait_some(works, &deadline);
}
template <detail::Works R, class Rep, class Period>
std::vector<std::size_t> wait_some(R&& works, std::chrono::duration<Rep, Period> duration) {
    return nexar::wait_some(works, detail::deadline_after(duration));
}

}  // namespace nexar
