#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nexar/dtype.hpp>
#include <nexar/export.hpp>
#include <nexar/types.hpp>
#include <optional>
#include <type_traits>

namespace nexar {

/// Match any rank of a communicator, or any tag. Distinct types, so that no number means "any" by
/// accident.
struct AnySource {};
struct AnyTag {};
inline constexpr AnySource any_source{};
inline constexpr AnyTag any_tag{};

/// The null rank, and the source in the Status of an empty Work. It is the smallest int, so that
/// `rank - 1` on rank 0 remains an error.
inline constexpr int no_rank =  // NOLINT(readability-identifier-naming): as any_source
    std::numeric_limits<int>::min();

/// The source that a receive or probe matches.
class SourcePattern {
public:
    // Implicit on purpose: `recv(data, 3, any_tag)`.
    SourcePattern(AnySource /*any*/) noexcept {}       // NOLINT(google-explicit-*)
    SourcePattern(int rank) noexcept : rank_(rank) {}  // NOLINT(google-explicit-*)

    /// Not checked against the size of a communicator; nullopt means any rank.
    const std::optional<int>& rank() const noexcept { return rank_; }

private:
    std::optional<int> rank_{};
};

namespace detail {

/// Integers, and enumerations that convert to integers.
template <class T>
concept TagNumber =
    sizeof(T) <= sizeof(std::uint64_t) && !std::is_same_v<T, bool> &&
    (std::is_integral_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, std::uint64_t>));

/// Throws Errc::invalid_argument.
[[noreturn]] NEXAR_EXPORT void refuse_negative_tag(std::int64_t tag);

template <TagNumber T>
constexpr Tag checked_tag(T tag) {
    if constexpr (std::is_enum_v<T>) {
        return checked_tag(static_cast<std::underlying_type_t<T>>(tag));
    } else {
        if constexpr (std::is_signed_v<T>) {
            if (tag < 0) refuse_negative_tag(tag);
        }
        return Tag(static_cast<std::uint64_t>(tag));
    }
}

}  // namespace detail

/// The tag of a message, from 0 to 2^64 - 1. Converts from any integer: a negative one does not
/// compile in a constant expression, and throws Errc::invalid_argument elsewhere.
class TagValue {
public:
    constexpr TagValue() noexcept = default;
    // Implicit on purpose: `send(data, 3, 7)`.
    template <detail::TagNumber T>
    constexpr TagValue(T tag) : tag_(detail::checked_tag(tag)) {}  // NOLINT(google-explicit-*)
    constexpr TagValue(Tag tag) noexcept : tag_(tag) {}            // NOLINT(google-explicit-*)

    constexpr Tag tag() const noexcept { return tag_; }

private:
    Tag tag_{};
};

/// The tags that a receive or probe matches: a single one, under the rules of TagValue, or any.
class TagPattern {
public:
    constexpr TagPattern(AnyTag /*any*/) noexcept {}  // NOLINT(google-explicit-*)
    template <detail::TagNumber T>
    constexpr TagPattern(T tag) : tag_(detail::checked_tag(tag)) {}  // NOLINT(google-explicit-*)
    constexpr TagPattern(Tag tag) noexcept : tag_(tag) {}            // NOLINT(google-explicit-*)
    // NOLINTNEXTLINE(google-explicit-*)
    constexpr TagPattern(TagValue value) noexcept : tag_(value.tag()) {}

    constexpr const std::optional<Tag>& tag() const noexcept { return tag_; }

private:
    std::optional<Tag> tag_{};
};

/// The message that a receive got or a probe found.
struct Status {
    int source = 0;
    std::uint64_t tag = 0;
    std::size_t bytes = 0;

    /// The number of whole elements of T in the message.
    template <Element T>
    std::size_t count() const noexcept {
        return bytes / sizeof(T);
    }

    friend bool operator==(const Status&, const Status&) noexcept = default;
};

/// The order in which pending large messages are transmitted. Does not affect the matching order.
enum class Priority : std::uint8_t { critical, realtime, bulk };

struct SendOptions {
    Priority priority = Priority::bulk;
    /// The send does not complete before a receive has matched the message.
    bool synchronous = false;
};

}  // namespace nexar
