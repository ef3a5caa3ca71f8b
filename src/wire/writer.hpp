#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "wire/fault.hpp"
#include "wire/scalar.hpp"

namespace nexar::wire {

/// Follows a description (wire/describe.hpp) and writes its fields in order. A Measurer must have
/// processed the same value without a fault, and `out` must be at least as long as it reported.
class Writer {
public:
    explicit Writer(std::span<std::byte> out) : at_(out.data()), end_(out.data() + out.size()) {}

    /// Bytes of `out` not written yet.
    std::size_t room() const noexcept { return static_cast<std::size_t>(end_ - at_); }

    template <Scalar T>
    void number(std::string_view, const T& value, Bounds = {}) {
        put(ScalarTraits<T>::to_raw(value));
    }

    template <std::unsigned_integral T>
    void constant(std::string_view, T value, FaultKind) {
        put(value);
    }

    template <Scalar T>
    void choice(std::string_view, const T& value, T, T, FaultKind) {
        put(ScalarTraits<T>::to_raw(value));
    }

    void flags(std::string_view, const bool& bit0, const bool& bit1, const bool& bit2) {
        put(static_cast<std::uint8_t>((bit0 ? 1U : 0U) | (bit1 ? 2U : 0U) | (bit2 ? 4U : 0U)));
    }

    void text(std::string_view, const std::string& value, Bounds) {
        put(static_cast<std::uint16_t>(value.size()));
        put(std::as_bytes(std::span(value)));
    }

    template <std::size_t N>
    void array(std::string_view, const std::array<std::byte, N>& value) {
        put(std::span<const std::byte>(value));
    }

    void boolean(std::string_view, const bool& value) {
        put(static_cast<std::uint8_t>(value ? 1 : 0));
    }

    void bytes(std::string_view, const std::vector<std::byte>& value, std::size_t) {
        put(static_cast<std::uint16_t>(value.size()));
        put(std::span<const std::byte>(value));
    }

    void rest(std::string_view, const std::vector<std::byte>& value, Bounds) {
        put(std::span<const std::byte>(value));
    }

    template <class T>
    void list(std::string_view, const std::vector<T>& values, std::size_t) {
        put(static_cast<std::uint16_t>(values.size()));
        for (const T& value : values) describe(*this, value);
    }

    template <Scalar T>
    void optional(std::uint16_t id, std::string_view, const std::optional<T>& value) {
        if (!value) return;
        put(id);
        put(static_cast<std::uint16_t>(sizeof(Raw<T>)));
        put(ScalarTraits<T>::to_raw(*value));
    }

    template <std::size_t N>
    void optional(std::uint16_t id, std::string_view, const std::array<std::byte, N>& value) {
        if (value == std::array<std::byte, N>{}) return;
        put(id);
        put(static_cast<std::uint16_t>(N));
        put(std::span<const std::byte>(value));
    }

    template <class Predicate>
    void rule(const Predicate&, std::string_view, std::uint64_t, std::string_view) {}

private:
    template <std::unsigned_integral T>
    void put(T value) {
        NEXAR_ASSERT(room() >= sizeof(T));
        store(at_, value);
        at_ += sizeof(T);
    }

    void put(std::span<const std::byte> bytes) {
        NEXAR_ASSERT(room() >= bytes.size());
        at_ = std::ranges::copy(bytes, at_).out;
    }

    std::byte* at_;
    std::byte* end_;
};

}  // namespace nexar::wire
