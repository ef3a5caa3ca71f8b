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

#include "wire/fault.hpp"
#include "wire/measurer.hpp"
#include "wire/scalar.hpp"

namespace nexar::wire {

/// Walks a description (wire/describe.hpp) and fills its fields from bytes that nobody has checked.
/// Keeps the first fault; after it nothing more is read, and what was filled is unspecified.
/// Lengths and counts are checked against their limits and against the bytes that are there before
/// memory is taken for what they announce.
class Reader {
public:
    /// `extension` holds the optional fields. Both must outlive the reader.
    explicit Reader(std::span<const std::byte> fixed, std::span<const std::byte> extension = {})
        : rest_(fixed), extension_(extension) {}

    /// Call after the description: refuses what it left over and counts unknown optional fields.
    void finish();

    const Fault& fault() const noexcept { return fault_; }
    std::uint32_t skipped_fields() const noexcept { return skipped_fields_; }

    template <Scalar T>
    void number(std::string_view field, T& value, Bounds bounds = kAnyValue<T>) {
        const std::byte* at = take(field, sizeof(Raw<T>));
        if (at == nullptr) return;
        const auto raw = load<Raw<T>>(at);
        if (raw < bounds.min || raw > bounds.max) {
            fail(out_of_bounds(field, raw, bounds));
            return;
        }
        value = ScalarTraits<T>::from_raw(raw);
    }

    template <std::unsigned_integral T>
    void constant(std::string_view field, T only, FaultKind otherwise) {
        const std::byte* at = take(field, sizeof(T));
        if (at == nullptr) return;
        if (const T found = load<T>(at); found != only) fail({otherwise, field, found, only});
    }

    template <Scalar T>
    void choice(std::string_view field, T& value, T first, T last, FaultKind unknown) {
        number(field, value);
        if (value < first || value > last) {
            fail({unknown, field, ScalarTraits<T>::to_raw(value), ScalarTraits<T>::to_raw(last)});
        }
    }

    void flags(std::string_view field, bool& bit0, bool& bit1) {
        std::uint8_t bits = 0;
        number(field, bits);
        if (bits > 3) fail({FaultKind::unknown_bits, field, bits, 3});
        bit0 = (bits & 1U) != 0;
        bit1 = (bits & 2U) != 0;
    }

    void text(std::string_view field, std::string& value, Bounds length);
    void bytes(std::string_view field, std::vector<std::byte>& value, std::size_t max);

    template <class T>
    void list(std::string_view field, std::vector<T>& values, std::size_t max) {
        const T empty{};
        Measurer smallest;
        describe(smallest, empty);
        values.resize(list_count(field, max, smallest.fixed_bytes()));
        for (T& value : values) {
            if (fault_.kind != FaultKind::none) return;
            describe(*this, value);
        }
    }

    template <Scalar T>
    void optional(std::uint16_t id, std::string_view field, std::optional<T>& value) {
        const std::byte* at = take_optional(id, field, sizeof(Raw<T>));
        if (at != nullptr) value = ScalarTraits<T>::from_raw(load<Raw<T>>(at));
    }

    template <std::size_t N>
    void optional(std::uint16_t id, std::string_view field, std::array<std::byte, N>& value) {
        const std::byte* at = take_optional(id, field, N);
        if (at == nullptr) return;
        std::copy_n(at, N, value.begin());
        if (value == std::array<std::byte, N>{}) fail({FaultKind::default_written, field});
    }

    template <class Predicate>
    void rule(Predicate holds, const Fault& otherwise) {
        if (!holds()) fail(otherwise);
    }

private:
    struct OptionalField {
        std::uint16_t id;
        std::uint16_t length;
    };

    // The next `n` bytes, or nullptr with a fault.
    const std::byte* take(std::string_view field, std::size_t n) {
        if (rest_.size() < n) {
            fail({FaultKind::truncated, field, rest_.size(), n});
            return nullptr;
        }
        const std::byte* at = rest_.data();
        rest_ = rest_.subspan(n);
        return at;
    }

    std::size_t take_length(std::string_view field, Bounds length);
    std::size_t list_count(std::string_view field, std::size_t max, std::size_t smallest);

    // Content of optional field `id`, or nullptr when it is not there. Unknown fields before it
    // are skipped: ids ascend both in descriptions and in bytes.
    const std::byte* take_optional(std::uint16_t id, std::string_view field, std::size_t length);
    std::optional<OptionalField> next_optional();
    void skip_unknown_below(std::uint32_t id);

    // Out of line: keeps the path without a fault short.
    void fail(const Fault& fault);

    std::span<const std::byte> rest_;
    std::span<const std::byte> extension_;
    std::uint16_t last_id_ = 0;
    std::uint32_t skipped_fields_ = 0;
    Fault fault_;
};

}  // namespace nexar::wire
