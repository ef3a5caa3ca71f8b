#include <nexar/version.hpp>

namespace nexar {

std::string_view version() noexcept {
    return NEXAR_VERSION;
}

}  // namespace nexar
