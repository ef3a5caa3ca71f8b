#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace nexar {

/// The counter of the processor from which the kernel computes the monotonic time. Reading it takes
/// less time than clock_gettime().
class TickCounter {
public:
#if defined(__aarch64__)
    static bool is_steady() noexcept { return true; }
    static std::uint64_t read() noexcept {
        std::uint64_t ticks = 0;
        asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#elif defined(__x86_64__)
    static bool is_steady() noexcept {
        unsigned a = 0;
        unsigned b = 0;
        unsigned c = 0;
        unsigned d = 0;
        constexpr unsigned kInvariant = 1U << 8;
        return __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
    }
    static std::uint64_t read() noexcept { return __rdtsc(); }
#else
    static bool is_steady() noexcept { return false; }
    static std::uint64_t read() noexcept { return 0; }
#endif
};

}  // namespace nexar
