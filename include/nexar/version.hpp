#pragma once

#include <nexar/export.hpp>
#include <string_view>

namespace nexar {

/// The version of the library that is linked, "major.minor.patch". Valid for the program's life.
NEXAR_EXPORT std::string_view version() noexcept;

}  // namespace nexar
