#pragma once

#include <array>
#include <cstdint>

namespace nexar {

/// A deterministic random number generator: the same seed gives the same numbers on every machine
/// and with every compiler, so that a simulation can be replayed from its printed seed. Not for
/// keys, tokens or anything that an attacker must not guess. Not thread-safe: use one per thread or
/// node, see fork().
///
/// xoshiro256** with its state filled by SplitMix64, as its authors recommend (D. Blackman, S.
/// Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47(4), 2021).
class Random {
public:
    explicit Random(std::uint64_t seed) noexcept;

    /// Continues from a known state, which must not be all zeros.
    static Random from_state(const std::array<std::uint64_t, 4>& state) noexcept;

    /// 64 uniform bits.
    std::uint64_t next() noexcept;

    /// Uniform in [0, n), without bias; n must not be 0.
    std::uint64_t below(std::uint64_t n) noexcept;

    /// Uniform in [0, 1), one of 2^53 equally spaced values.
    double uniform() noexcept;

    /// True with the given probability, which must be in [0, 1]; never for 0, always for 1.
    bool chance(double probability) noexcept;

    /// A generator whose numbers are independent of the later numbers of this one. Consumes two
    /// numbers.
    Random fork() noexcept;

private:
    explicit Random(const std::array<std::uint64_t, 4>& state) noexcept : state_(state) {}

    std::array<std::uint64_t, 4> state_;
};

/// The sequence that fills the state of Random, and a mixer for hashing small integers.
class SplitMix64 {
public:
    explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}

    constexpr std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }

private:
    std::uint64_t state_;
};

/// A seed from the operating system, different each time. For Random only: 64 bits that appear in
/// logs are not key material.
std::uint64_t entropy_seed() noexcept;

}  // namespace nexar
