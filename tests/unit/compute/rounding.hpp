#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nexar::compute::testing {

/// Rounds to a 16-bit floating-point format by searching a table of all its values for the nearest
/// one, with ties to even. Uses only the definition of the format.
class HalfFormat {
public:
    constexpr HalfFormat(int exponent_bits, int fraction_bits)
        : exponent_bits_(exponent_bits), fraction_bits_(fraction_bits) {}

    static const HalfFormat& f16() {
        static const HalfFormat format = make(5, 10);
        return format;
    }
    static const HalfFormat& bf16() {
        static const HalfFormat format = make(8, 7);
        return format;
    }

    std::uint16_t infinity() const {
        return static_cast<std::uint16_t>(((1U << exponent_bits_) - 1) << fraction_bits_);
    }
    std::uint16_t nan() const {
        return static_cast<std::uint16_t>(infinity() | 1U << (fraction_bits_ - 1));
    }
    bool is_nan(std::uint16_t bits) const { return (bits & 0x7fffU) > infinity(); }

    double value(std::uint16_t bits) const {
        const auto magnitude = static_cast<std::uint16_t>(bits & 0x7fffU);
        const double size = magnitude == infinity() ? INFINITY
                            : is_nan(bits)          ? NAN
                                                    : values_[magnitude];
        return (bits & 0x8000U) != 0 ? -size : size;
    }

    /// Between magnitude i and i + 1; the last one is where infinity begins.
    double midpoint(std::size_t i) const { return midpoints_[i]; }
    std::size_t midpoints() const { return midpoints_.size(); }

    /// The magnitude nearest to (size + rest) / scale. Midpoints times `scale` must be exact.
    /// `rest` is smaller than the last place of `size`; its sign breaks ties.
    std::uint16_t nearest(double size, double rest, double scale = 1) const {
        const auto at = std::lower_bound(midpoints_.begin(), midpoints_.end(), size,
                                         [scale](double m, double x) { return m * scale < x; });
        auto index = static_cast<std::size_t>(at - midpoints_.begin());
        if (at != midpoints_.end() && *at * scale == size) {
            if (rest > 0 || (rest == 0 && index % 2 == 1)) ++index;
        }
        return static_cast<std::uint16_t>(index);
    }

    std::uint16_t sum(std::uint16_t a, std::uint16_t b) const {
        const double x = value(a);
        const double y = value(b);
        const double total = x + y;
        if (!std::isfinite(total)) return special(total);
        // The exact sum is total + rest (Knuth's two-sum).
        const double y_part = total - x;
        const double rest = (x - (total - y_part)) + (y - y_part);
        return with_sign(nearest(std::fabs(total), total < 0 ? -rest : rest), std::signbit(total));
    }

    std::uint16_t product(std::uint16_t a, std::uint16_t b) const {
        const double total = value(a) * value(b);  // exact: 22 bits
        if (!std::isfinite(total)) return special(total);
        return with_sign(nearest(std::fabs(total), 0), std::signbit(total));
    }

    std::uint16_t quotient(std::uint16_t a, std::uint32_t divisor) const {
        const double x = value(a);
        if (!std::isfinite(x)) return special(x);
        return with_sign(nearest(std::fabs(x), 0, divisor), std::signbit(x));
    }

    std::uint16_t lesser(std::uint16_t a, std::uint16_t b) const {
        if (is_nan(a) || is_nan(b)) return nan();
        if (value(a) != value(b)) return value(a) < value(b) ? a : b;
        return std::signbit(value(a)) ? a : b;
    }

    std::uint16_t greater(std::uint16_t a, std::uint16_t b) const {
        if (is_nan(a) || is_nan(b)) return nan();
        if (value(a) != value(b)) return value(a) > value(b) ? a : b;
        return std::signbit(value(a)) ? b : a;
    }

    std::uint16_t special(double x) const {
        return std::isnan(x) ? nan() : with_sign(infinity(), x < 0);
    }

    static std::uint16_t with_sign(std::uint16_t magnitude, bool negative) {
        return static_cast<std::uint16_t>(magnitude | (negative ? 0x8000U : 0U));
    }

private:
    static HalfFormat make(int exponent_bits, int fraction_bits) {
        HalfFormat format(exponent_bits, fraction_bits);
        const int bias = (1 << (exponent_bits - 1)) - 1;
        for (int bits = 0; bits <= format.infinity(); ++bits) {
            const int exponent = bits >> fraction_bits;
            const int fraction = bits & ((1 << fraction_bits) - 1);
            const int whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
            const int scale = (exponent == 0 ? 1 : exponent) - bias - fraction_bits;
            format.values_.push_back(std::ldexp(whole, scale));
        }
        for (std::size_t i = 0; i + 1 < format.values_.size(); ++i) {
            format.midpoints_.push_back((format.values_[i] + format.values_[i + 1]) / 2);
        }
        return format;
    }

    int exponent_bits_;
    int fraction_bits_;
    std::vector<double> values_;     // of the magnitudes 0 to infinity, with infinity as a number
    std::vector<double> midpoints_;  // one fewer
};

}  // namespace nexar::compute::testing
