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

#include "base/printable.hpp"
#include "wire/fault.hpp"
#include "wire/measurer.hpp"
#include "wire/optional_fields.hpp"
#include "wire/scalar.hpp"

namespace nexar::wire {

/// Follows a description (wire/describe.hpp) and fills its fields from untrusted bytes. After a
/// fault it reads no further, and the content of the fields is unspecified. It checks lengths and
/// counts against their limits and against the available bytes before it allocates memory for them.
///
/// The address of the reader is never passed to a function that is not inlined, so that the
/// optimiser keeps it in registers: that is why the fault and the optional fields are separate
/// objects.
class Reader {
public:
    /// All three must outlive the reader.
    Reader(std::span<const std::byte> fixed, OptionalFields& optional, FirstFault& fault)
        : rest_(fixed), optional_(optional), fault_(fault) {}

    /// Call after the description: remaining bytes are a fault.
    void finish() {
        if (!rest_.empty()) fail({FaultKind::trailing, {}, rest_.size()});
        optional_.finish();
    }

    template <Scalar T>
    void number(std::string_view field, T& value, Bounds bounds = kAnyValue<T>) {
        const std::byte* at = take(field, sizeof(Raw<T>));
        if (at == nullptr) return;
        const auto raw = load<Raw<T>>(at);
        if (!within(raw, bounds)) {
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

    void flags(std::string_view field, bool& bit0, bool& bit1, bool& bit2) {
        std::uint8_t bits = 0;
        number(field, bits);
        if (bits > 7) fail({FaultKind::unknown_bits, field, bits, 7});
        bit0 = (bits & 1U) != 0;
        bit1 = (bits & 2U) != 0;
        bit2 = (bits & 4U) != 0;
    }

    void text(std::string_view field, std::string& value, Bounds length) {
        const auto content = take_sized(field, length);
        value.resize(content.size());
        std::ranges::transform(content, value.begin(),
                               [](std::byte byte) { return static_cast<char>(byte); });
        if (const auto at = first_unprintable(value)) fail({FaultKind::bad_text, field, *at});
    }

    template <std::size_t N>
    void array(std::string_view field, std::array<std::byte, N>& value) {
        const std::byte* at = take(field, N);
        if (at != nullptr) std::copy_n(at, N, value.begin());
    }

    void boolean(std::string_view field, bool& value) {
        std::uint8_t raw = 0;
        number(field, raw, {0, 1});
        value = raw == 1;
    }

    void bytes(std::string_view field, std::vector<std::byte>& value, std::size_t max) {
        const auto content = take_sized(field, {0, max});
        value = std::vector<std::byte>(content.begin(), content.end());
    }

    void rest(std::string_view field, std::vector<std::byte>& value, Bounds length) {
        if (rest_.size() < length.min) {
            fail({FaultKind::truncated, field, rest_.size(), length.min});
        } else if (rest_.size() > length.max) {
            fail({FaultKind::too_long, field, rest_.size(), length.max});
        }
        value = std::vector<std::byte>(rest_.begin(), rest_.end());
        rest_ = {};
    }

    template <class T>
    void list(std::string_view field, std::vector<T>& values, std::size_t max) {
        values.resize(take_count(field, max, smallest<T>()));
        for (T& value : values) {
            if (fault_.any()) return;
            describe(*this, value);
        }
    }

    template <Scalar T>
    void optional(std::uint16_t id, std::string_view field, std::optional<T>& value) {
        const std::byte* at = optional_.take(id, field, sizeof(Raw<T>));
        if (at != nullptr) value = ScalarTraits<T>::from_raw(load<Raw<T>>(at));
    }

    template <std::size_t N>
    void optional(std::uint16_t id, std::string_view field, std::array<std::byte, N>& value) {
        const std::byte* at = optional_.take(id, field, N);
        if (at == nullptr) return;
        std::copy_n(at, N, value.begin());
        if (value == std::array<std::byte, N>{}) fail({FaultKind::default_written, field});
    }

    template <class Predicate>
    void rule(Predicate holds, std::string_view field, std::uint64_t found,
              std::string_view allowed) {
        if (!holds()) fail({FaultKind::rule, field, found, 0, allowed});
    }

private:
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

    // The bytes that follow a length; empty after a fault.
    std::span<const std::byte> take_sized(std::string_view field, Bounds length) {
        std::uint16_t size = 0;
        number(field, size);
        if (fault_.any()) return {};
        if (!within(size, length)) {
            fail(out_of_bounds(field, size, length, FaultKind::too_long));
            return {};
        }
        const std::byte* at = take(field, size);
        if (at == nullptr) return {};
        return {at, size};
    }

    // How many entries of at least `entry_bytes` follow; 0 after a fault.
    std::size_t take_count(std::string_view field, std::size_t max, std::size_t entry_bytes) {
        std::uint16_t count = 0;
        number(field, count);
        if (count > max) {
            fail({FaultKind::too_many, field, count, max});
            return 0;
        }
        if (count * entry_bytes > rest_.size()) {
            fail({FaultKind::truncated, field, rest_.size(), count * entry_bytes});
            return 0;
        }
        return count;
    }

    template <class T>
    static std::size_t smallest() {
        const T empty{};
        Measurer measurer;
        describe(measurer, empty);
        return measurer.fixed_bytes();
    }

    void fail(const Fault& fault) {
        fault_.keep(fault);
        rest_ = {};
    }

    std::span<const std::byte> rest_;
    OptionalFields& optional_;
    FirstFault& fault_;
};

}  // namespace nexar::wire
