#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include "base/types.hpp"

namespace nexar {

namespace detail {
std::string hex_digits(std::span<const std::byte> bytes);
/// Fills `out` from exactly two lower-case digits per byte. Returns false for any other text and
/// may then leave `out` partly written.
bool from_hex_digits(std::string_view text, std::span<std::byte> out) noexcept;
/// The error for a text that is not the 32 digits of an id; `what` is the kind of id.
Error not_an_id(std::string_view what, std::string_view text);
}  // namespace detail

/// A random 16-byte id with a type of its own, so that kinds of ids cannot be mixed up. Messages
/// call it `Name::kWord`. The only text form is 32 lower-case hexadecimal digits.
template <class Name>
class RandomId {
public:
    static constexpr std::size_t kBytes = 16;
    static constexpr std::size_t kDigits = 2 * kBytes;

    constexpr RandomId() noexcept = default;
    explicit constexpr RandomId(const std::array<std::byte, kBytes>& bytes) noexcept
        : bytes_(bytes) {}

    /// On failure, the Error (invalid_argument) quotes the text.
    static Result<RandomId> from_hex(std::string_view text) {
        RandomId id;
        if (!detail::from_hex_digits(text, id.bytes_)) return detail::not_an_id(Name::kWord, text);
        return id;
    }

    std::string to_hex() const { return detail::hex_digits(bytes_); }

    constexpr const std::array<std::byte, kBytes>& bytes() const noexcept { return bytes_; }

    friend constexpr auto operator<=>(const RandomId&, const RandomId&) noexcept = default;

private:
    std::array<std::byte, kBytes> bytes_{};
};

struct ClusterIdName {
    static constexpr std::string_view kWord = "cluster id";
};
struct NodeIdName {
    static constexpr std::string_view kWord = "node id";
};

/// Identifies a cluster during its whole life.
using ClusterId = RandomId<ClusterIdName>;

/// Identifies a node. A restarted process may keep it, with a higher incarnation.
using NodeId = RandomId<NodeIdName>;

/// Distinguishes successive processes with the same node id; only grows.
using Incarnation = Strong<struct IncarnationName, std::uint64_t>;

/// Who a node is. A peer's identity comes from its certificate, never from a field of a message.
struct Identity {
    ClusterId cluster{};
    NodeId node{};
    Incarnation incarnation{};

    friend auto operator<=>(const Identity&, const Identity&) noexcept = default;
};

}  // namespace nexar

/// The bytes are random, so any eight of them are a hash.
template <class Name>
struct std::hash<nexar::RandomId<Name>> {
    std::size_t operator()(const nexar::RandomId<Name>& id) const noexcept {
        std::size_t value = 0;
        std::memcpy(&value, id.bytes().data(), sizeof value);
        return value;
    }
};
