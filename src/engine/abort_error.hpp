#pragma once

#include <nexar/error.hpp>

#include "wire/messages.hpp"

namespace nexar::engine {

/// The error of every operation after an abort: "rank 2 aborted the program with code 3: why".
Error error_of(const wire::Abort& abort);

}  // namespace nexar::engine
