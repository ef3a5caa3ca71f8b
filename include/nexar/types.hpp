#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace nexar {

/// A strongly typed integer: a Tag is not a Sequence. `Name` is any type and serves only to
/// distinguish them. Has no arithmetic: use value() to compute.
template <class Name, class Rep>
class Strong {
public:
    using rep = Rep;

    constexpr Strong() noexcept = default;
    explicit constexpr Strong(Rep value) noexcept : value_(value) {}

    constexpr Rep value() const noexcept { return value_; }

    friend constexpr auto operator<=>(Strong, Strong) noexcept = default;

private:
    Rep value_ = 0;
};

/// A number chosen by the user that takes part in matching.
using Tag = Strong<struct TagName, std::uint64_t>;

/// Sequence number of a message per (sender, receiver, context), from 0.
using Sequence = Strong<struct SequenceName, std::uint64_t>;

}  // namespace nexar

template <class Name, class Rep>
struct std::hash<nexar::Strong<Name, Rep>> {
    std::size_t operator()(nexar::Strong<Name, Rep> x) const noexcept {
        return std::hash<Rep>{}(x.value());
    }
};
