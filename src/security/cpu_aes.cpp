#include "security/cpu_aes.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace nexar::security {

bool cpu_has_aes() noexcept {
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    constexpr unsigned long kNeeded = HWCAP_AES | HWCAP_PMULL;
    return (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
#else
    return false;
#endif
}

}  // namespace nexar::security
