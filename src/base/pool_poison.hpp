#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define NEXAR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NEXAR_ASAN 1
#endif
#endif

#if defined(NEXAR_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace nexar {

/// AddressSanitizer reports an access between poison() and unpoison(), a use after return to the
/// pool. In other builds these functions do nothing.
inline void poison([[maybe_unused]] std::byte* memory,
                   [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(NEXAR_ASAN)
    ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}

inline void unpoison([[maybe_unused]] std::byte* memory,
                     [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(NEXAR_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

}  // namespace nexar
