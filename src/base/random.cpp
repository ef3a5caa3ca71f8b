#include "base/random.hpp"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/assert.hpp"

namespace nexar {

namespace {

struct Product {
    std::uint64_t high;
    std::uint64_t low;
};

Product multiply(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return {.high = static_cast<std::uint64_t>(product >> 64),
            .low = static_cast<std::uint64_t>(product)};
}

std::array<std::uint64_t, 4> expanded(std::uint64_t a, std::uint64_t b) noexcept {
    SplitMix64 first(a);
    SplitMix64 second(b);
    // SplitMix64 never returns the same number twice in a row, so these are never all zero.
    return {first.next(), first.next(), second.next(), second.next()};
}

std::array<std::uint64_t, 4> expanded(std::uint64_t seed) noexcept {
    SplitMix64 sequence(seed);
    return {sequence.next(), sequence.next(), sequence.next(), sequence.next()};
}

}  // namespace

Random::Random(std::uint64_t seed) noexcept : state_(expanded(seed)) {}

Random Random::from_state(const std::array<std::uint64_t, 4>& state) noexcept {
    NEXAR_ASSERT(std::ranges::any_of(state, [](std::uint64_t word) { return word != 0; }),
                 "xoshiro256** produces only zeros from an all-zero state");
    return Random(state);
}

std::uint64_t Random::next() noexcept {
    auto& [s0, s1, s2, s3] = state_;
    const std::uint64_t result = std::rotl(s1 * 5, 7) * 9;
    const std::uint64_t shifted = s1 << 17;
    s2 ^= s0;
    s3 ^= s1;
    s1 ^= s2;
    s0 ^= s3;
    s2 ^= shifted;
    s3 = std::rotl(s3, 45);
    return result;
}

// D. Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29(1), 2019: the high word
// of next() * n is in [0, n); the few low words that would favour some results are rejected.
std::uint64_t Random::below(std::uint64_t n) noexcept {
    NEXAR_ASSERT(n != 0, "the range [0, 0) is empty");
    Product product = multiply(next(), n);
    if (product.low < n) {
        const std::uint64_t rejected = (0 - n) % n;
        while (product.low < rejected) product = multiply(next(), n);
    }
    return product.high;
}

double Random::uniform() noexcept {
    return static_cast<double>(next() >> 11) * 0x1p-53;
}

bool Random::chance(double probability) noexcept {
    NEXAR_ASSERT(probability >= 0 && probability <= 1, "a probability is in [0, 1]");
    return uniform() < probability;
}

Random Random::fork() noexcept {
    const std::uint64_t first = next();
    const std::uint64_t second = next();
    return Random(expanded(first, second));
}

std::uint64_t entropy_seed() noexcept {
    std::uint64_t seed = 0;
    ssize_t got = 0;
    do {
        got = getrandom(&seed, sizeof seed, 0);
    } while (got < 0 && errno == EINTR);
    NEXAR_ASSERT(got == sizeof seed, "getrandom() failed; Linux has it since 3.17");
    return seed;
}

}  // namespace nexar
