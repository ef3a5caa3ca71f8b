#include "security/gnutls_handle.hpp"

#include <fmt/format.h>

namespace nexar::security {

gnutls_datum_t datum(std::span<const std::byte> bytes) noexcept {
    // GnuTLS has one type for input and output.
    auto* const data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    return {data, static_cast<unsigned>(bytes.size())};
}

Error library_error(std::string_view doing, int code) {
    const bool memory = code == GNUTLS_E_MEMORY_ERROR;
    return {memory ? Errc::out_of_memory : Errc::unsupported,
            fmt::format("GnuTLS {} failed while {}: {}", gnutls_check_version(nullptr), doing,
                        gnutls_strerror(code))};
}

}  // namespace nexar::security
