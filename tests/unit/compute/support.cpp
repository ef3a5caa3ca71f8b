#include "unit/compute/support.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "support/seed.hpp"

namespace nexar::compute::testing {

namespace {

DType value_type(DType dtype) {
    return is_located(dtype) ? static_cast<DType>(static_cast<int>(dtype) - 32) : dtype;
}

template <class T>
void put(std::byte* at, T value) {
    std::memcpy(at, &value, sizeof(value));
}

// Bit patterns that are special in a format with this many fraction bits: zeros, subnormals, powers
// of two, the largest values, infinities, quiet and signalling NaNs, of both signs.
template <class Bits>
Bits special_float(int fraction_bits, Random& random) {
    constexpr int kWidth = std::numeric_limits<Bits>::digits;
    const auto fraction = static_cast<Bits>((Bits{1} << fraction_bits) - 1);
    const auto infinity = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1 & ~fraction);
    const auto one = static_cast<Bits>(infinity >> 1 & ~fraction);
    const std::array<Bits, 12> specials{
        Bits{0},
        Bits{1},
        fraction,
        static_cast<Bits>(fraction + 1),
        static_cast<Bits>(infinity - 1),
        infinity,
        static_cast<Bits>(infinity + 1),
        static_cast<Bits>(infinity | (fraction ^ (fraction >> 1))),
        static_cast<Bits>(infinity | fraction),
        one,
        static_cast<Bits>(one + 1),
        static_cast<Bits>(one + (Bits{1} << fraction_bits)),
    };
    const auto sign = static_cast<Bits>(static_cast<Bits>(random() & 1) << (kWidth - 1));
    return static_cast<Bits>(specials.at(random() % specials.size()) | sign);
}

template <class Bits>
Bits random_float(int fraction_bits, Random& random) {
    const auto bits = static_cast<Bits>(random());
    switch (random() % 3) {
        case 0:
            return bits;
        case 1:
            return special_float<Bits>(fraction_bits, random);
        default: {  // between a quarter and four, either sign: sums round and cancel
            constexpr int kWidth = std::numeric_limits<Bits>::digits;
            const auto kept = static_cast<Bits>(static_cast<Bits>((Bits{1} << fraction_bits) - 1) |
                                                Bits{1} << (kWidth - 1));
            const int exponent_bits = kWidth - 1 - fraction_bits;
            const Bits bias = static_cast<Bits>((Bits{1} << (exponent_bits - 1)) - 1);
            const auto exponent = static_cast<Bits>(bias - 2 + random() % 4);
            return static_cast<Bits>((bits & kept) | static_cast<Bits>(exponent << fraction_bits));
        }
    }
}

template <class Bits>
Bits random_integer(Random& random) {
    constexpr auto kMax = static_cast<Bits>(~Bits{0});
    constexpr auto kSignBit = static_cast<Bits>(kMax ^ (kMax >> 1));
    const std::array<Bits, 6> specials{
        Bits{0}, Bits{1}, kMax, kSignBit, static_cast<Bits>(kSignBit - 1), Bits{2}};
    if (random() % 2 == 0) return specials.at(random() % specials.size());
    return static_cast<Bits>(random());
}

void put_random(DType dtype, std::byte* at, Random& random) {
    switch (dtype) {
        case DType::i8:
        case DType::u8:
            return put(at, random_integer<std::uint8_t>(random));
        case DType::i16:
        case DType::u16:
            return put(at, random_integer<std::uint16_t>(random));
        case DType::i32:
        case DType::u32:
            return put(at, random_integer<std::uint32_t>(random));
        case DType::i64:
        case DType::u64:
            return put(at, random_integer<std::uint64_t>(random));
        case DType::f16:
            return put(at, random_float<std::uint16_t>(10, random));
        case DType::bf16:
            return put(at, random_float<std::uint16_t>(7, random));
        case DType::f32:
            return put(at, random_float<std::uint32_t>(23, random));
        case DType::f64:
            return put(at, random_float<std::uint64_t>(52, random));
        case DType::c64:
            put(at, random_float<std::uint32_t>(23, random));
            return put(at + 4, random_float<std::uint32_t>(23, random));
        case DType::c128:
            put(at, random_float<std::uint64_t>(52, random));
            return put(at + 8, random_float<std::uint64_t>(52, random));
        default:  // located
            put(at, random());
            put_random(value_type(dtype), at, random);
            return put(at + 8, static_cast<std::int64_t>(random() % 4) - 2);
    }
}

template <class Part>
bool same_part(const std::byte* got, const std::byte* want) {
    if (std::memcmp(got, want, sizeof(Part)) == 0) return true;
    Part x;
    Part y;
    std::memcpy(&x, got, sizeof(x));
    std::memcpy(&y, want, sizeof(y));
    return std::isnan(x) && std::isnan(y);
}

bool same(DType dtype, ReduceOp op, const std::byte* got, const std::byte* want) {
    const bool payload_open =
        op == ReduceOp::sum || op == ReduceOp::product || op == ReduceOp::average;
    if (payload_open) {
        if (dtype == DType::f32) return same_part<float>(got, want);
        if (dtype == DType::f64) return same_part<double>(got, want);
        if (dtype == DType::c64) {
            return same_part<float>(got, want) && same_part<float>(got + 4, want + 4);
        }
        if (dtype == DType::c128) {
            return same_part<double>(got, want) && same_part<double>(got + 8, want + 8);
        }
    }
    return std::memcmp(got, want, size_of(dtype)) == 0;
}

std::string hex(const std::byte* p, std::size_t size) {
    std::string text = "0x";
    for (std::size_t i = size; i-- > 0;) {
        std::array<char, 3> digits{};
        std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(p[i]));
        text += digits.data();
    }
    return text;
}

}  // namespace

bool is_integer(DType dtype) {
    return static_cast<int>(dtype) <= static_cast<int>(DType::u64);
}

bool is_located(DType dtype) {
    return static_cast<int>(dtype) >= static_cast<int>(DType::located_i8);
}

bool is_complex(DType dtype) {
    return dtype == DType::c64 || dtype == DType::c128;
}

bool makes_sense(DType dtype, ReduceOp op) {
    const bool with_location = op == ReduceOp::min_location || op == ReduceOp::max_location;
    if (is_located(dtype) || with_location) return is_located(dtype) && with_location;
    if (op == ReduceOp::sum || op == ReduceOp::product || op == ReduceOp::average) return true;
    if (op == ReduceOp::min || op == ReduceOp::max) return !is_complex(dtype);
    return is_integer(dtype);
}

std::uint64_t seed() {
    static const std::uint64_t value = test_seed(20250711);
    return value;
}

std::size_t scaled(std::size_t tries) {
    const char* text = std::getenv("NEXAR_TEST_VOLUME");
    const std::size_t percent = text != nullptr ? std::strtoul(text, nullptr, 10) : 100;
    return std::max<std::size_t>(1, tries * percent / 100);
}

Bytes random_elements(DType dtype, std::size_t count, Random& random) {
    Bytes bytes(count * size_of(dtype));
    for (std::size_t i = 0; i < count; ++i) {
        put_random(dtype, bytes.data() + i * size_of(dtype), random);
    }
    return bytes;
}

std::string difference(DType dtype, ReduceOp op, const Bytes& got, const Bytes& want) {
    if (got.size() != want.size()) return "sizes differ";
    const std::size_t size = size_of(dtype);
    for (std::size_t i = 0; i < got.size(); i += size) {
        if (same(dtype, op, got.data() + i, want.data() + i)) continue;
        return std::string(name(dtype)) + " " + std::string(name(op)) + ", element " +
               std::to_string(i / size) + " of " + std::to_string(got.size() / size) + ": got " +
               hex(got.data() + i, size) + ", want " + hex(want.data() + i, size);
    }
    return {};
}

Bytes folded(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b) {
    Bytes out(a.size(), std::byte{0xa5});
    const Result<Reducer> reducer = reducer_for(dtype, op);
    reducer->fold(out.data(), a.data(), b.data(), a.size() / size_of(dtype));
    return out;
}

}  // namespace nexar::compute::testing
