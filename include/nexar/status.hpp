#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/dtype.hpp>
#include <nexar/types.hpp>
#include <optional>

namespace nexar {

/// Stands for any rank of a communicator, or any tag. Types of their own, so that no number means
/// "any" by accident.
struct AnySource {};
struct AnyTag {};
inline constexpr AnySource any_source{};
inline constexpr AnyTag any_tag{};

/// Whose messages a receive wants.
class SourcePattern {
public:
    // Implicit on purpose: `recv(data, 3, any_tag)`.
    SourcePattern(AnySource /*any*/) noexcept {}       // NOLINT(google-explicit-*)
    SourcePattern(int rank) noexcept : rank_(rank) {}  // NOLINT(google-explicit-*)
    SourcePattern(Rank rank) noexcept                  // NOLINT(google-explicit-*)
        : rank_(static_cast<std::int64_t>(rank.value())) {}

    /// Not checked against the size of a communicator; empty: any.
    const std::optional<std::int64_t>& rank() const noexcept { return rank_; }

private:
    std::optional<std::int64_t> rank_{};
};

/// Which tags a receive wants.
class TagPattern {
public:
    TagPattern(AnyTag /*any*/) noexcept {}                 // NOLINT(google-explicit-*)
    TagPattern(std::uint64_t tag) noexcept : tag_(tag) {}  // NOLINT(google-explicit-*)
    TagPattern(Tag tag) noexcept : tag_(tag) {}            // NOLINT(google-explicit-*)

    const std::optional<Tag>& tag() const noexcept { return tag_; }

private:
    std::optional<Tag> tag_{};
};

/// What a receive got, or a probe found.
struct Status {
    int source = 0;
    std::uint64_t tag = 0;
    std::size_t bytes = 0;

    /// How many elements of T these are; a rest that is no whole element does not count.
    template <Element T>
    std::size_t count() const noexcept {
        return bytes / sizeof(T);
    }

    friend bool operator==(const Status&, const Status&) noexcept = default;
};

/// In which order large messages are written when several wait. Matching order is never changed.
enum class Priority : std::uint8_t { critical, realtime, bulk };

struct SendOptions {
    Priority priority = Priority::bulk;
    /// The send ends when a receive has matched the message, not before.
    bool synchronous = false;
};

}  // namespace nexar
