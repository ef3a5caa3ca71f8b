#include "compute/stream_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace nexar::compute {

#if defined(__SSE2__)

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t kLine = 64;
    const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kLine;  // NOLINT
    const std::size_t head = std::min(bytes, past == 0 ? 0 : kLine - past);
    std::memcpy(to, from, head);
    std::size_t at = head;
    for (; at + kLine <= bytes; at += kLine) {
        const auto* const source = reinterpret_cast<const __m128i*>(from + at);  // NOLINT
        auto* const target = reinterpret_cast<__m128i*>(to + at);                // NOLINT
        const __m128i a = _mm_loadu_si128(source);
        const __m128i b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2);
        const __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    std::memcpy(to + at, from + at, bytes - at);
    // Such stores are not ordered with the stores that publish the data.
    _mm_sfence();
}

#else

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    std::memcpy(to, from, bytes);
}

#endif

}  // namespace nexar::compute
