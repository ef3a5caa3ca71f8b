// Not part of a program: secret_logged.cmake compiles it twice. Without NEXAR_LOG_THE_SECRET it
// must compile; with it, it must not.

#include "base/log.hpp"
#include "base/secret.hpp"

void log_it(const nexar::Secret& secret) {
#ifdef NEXAR_LOG_THE_SECRET
    NEXAR_LOG_ERROR("the secret is {}", secret);
#else
    NEXAR_LOG_ERROR("the secret has {} bytes", secret.size());
#endif
}
