#pragma once

/// Everything a program needs but the optional integrations.
#include <nexar/dtype.hpp>
#include <nexar/error.hpp>
#include <nexar/log.hpp>
#include <nexar/numeric.hpp>
#include <nexar/result.hpp>
#include <nexar/types.hpp>
#include <nexar/version.hpp>
