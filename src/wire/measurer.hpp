#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "wire/fault.hpp"
#include "wire/scalar.hpp"

namespace nexar::wire {

/// Follows a description (wire/describe.hpp), counts the bytes that a Writer will write and checks
/// every limit, so that the Writer need not. Keeps the first fault.
class Measurer {
public:
    std::size_t fixed_bytes() const noexcept { return fixed_; }
    std::size_t extension_bytes() const noexcept { return extension_; }
    const FirstFault& fault() const noexcept { return fault_; }

    template <Scalar T>
    void number(std::string_view field, const T& value, Bounds bounds = kAnyValue<T>) {
        fixed_ += sizeof(Raw<T>);
        check(field, ScalarTraits<T>::to_raw(value), bounds);
    }

    template <std::unsigned_integral T>
    void constant(std::string_view, T, FaultKind) {
        fixed_ += sizeof(T);
    }

    template <Scalar T>
    void choice(std::string_view field, const T& value, T first, T last, FaultKind unknown) {
        fixed_ += sizeof(Raw<T>);
        if (value < first || value > last) {
            fault_.keep(
                {unknown, field, ScalarTraits<T>::to_raw(value), ScalarTraits<T>::to_raw(last)});
        }
    }

    void flags(std::string_view, const bool&, const bool&, const bool&) { fixed_ += 1; }

    void text(std::string_view field, const std::string& value, Bounds length) {
        fixed_ += 2 + value.size();
        // Check the length first: do not scan text that may be huge.
        if (!check(field, value.size(), length, FaultKind::too_long)) return;
        if (const auto at = first_unprintable(value))
            fault_.keep({FaultKind::bad_text, field, *at});
    }

    template <std::size_t N>
    void array(std::string_view, const std::array<std::byte, N>&) {
        fixed_ += N;
    }

    void boolean(std::string_view, const bool&) { fixed_ += 1; }

    void bytes(std::string_view field, const std::vector<std::byte>& value, std::size_t max) {
        fixed_ += 2 + value.size();
        check(field, value.size(), {0, max}, FaultKind::too_long);
    }

    /// Bytes up to the end of the fixed part, so without a length.
    void rest(std::string_view field, const std::vector<std::byte>& value, Bounds length) {
        fixed_ += value.size();
        check(field, value.size(), length, FaultKind::too_long);
    }

    template <class T>
    void list(std::string_view field, const std::vector<T>& values, std::size_t max) {
        fixed_ += 2;
        check(field, values.size(), {0, max}, FaultKind::too_many);
        for (const T& value : values) describe(*this, value);
    }

    template <Scalar T>
    void optional(std::uint16_t, std::string_view field, const std::optional<T>& value) {
        if (!value) return;
        extension_ += 4 + sizeof(Raw<T>);
        check(field, ScalarTraits<T>::to_raw(*value), kAnyValue<T>);
    }

    template <std::size_t N>
    void optional(std::uint16_t, std::string_view, const std::array<std::byte, N>& value) {
        if (value != std::array<std::byte, N>{}) extension_ += 4 + N;
    }

    template <class Predicate>
    void rule(Predicate holds, std::string_view field, std::uint64_t found,
              std::string_view allowed) {
        if (!holds()) fault_.keep({FaultKind::rule, field, found, 0, allowed});
    }

private:
    bool check(std::string_view field, std::uint64_t found, Bounds bounds,
               FaultKind above = FaultKind::above) {
        if (within(found, bounds)) return true;
        fault_.keep(out_of_bounds(field, found, bounds, above));
        return false;
    }

    std::size_t fixed_ = 0;
    std::size_t extension_ = 0;
    FirstFault fault_;
};

}  // namespace nexar::wire
