#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <nexar/error.hpp>
#include <string_view>
#include <system_error>

namespace nexar::shm {

/// The error for a system call that has just set errno: "this node could not <what>: <why>".
inline Error system_failure(std::string_view what) {
    const int code = errno;
    const bool exhausted =
        code == ENOMEM || code == EMFILE || code == ENFILE || code == ENOSPC || code == ENOBUFS;
    return {exhausted ? Errc::out_of_memory : Errc::not_allowed,
            fmt::format("this node could not {}: {}", what, std::generic_category().message(code))};
}

}  // namespace nexar::shm
