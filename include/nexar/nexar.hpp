#pragma once

/// The whole public API except the optional integrations.
#include <nexar/buffer.hpp>
#include <nexar/buffer_collectives.hpp>
#include <nexar/chunk_collectives.hpp>
#include <nexar/collective_call.hpp>
#include <nexar/collective_operation.hpp>
#include <nexar/collectives.hpp>
#include <nexar/communicator.hpp>
#include <nexar/dtype.hpp>
#include <nexar/error.hpp>
#include <nexar/join.hpp>
#include <nexar/kept.hpp>
#include <nexar/log.hpp>
#include <nexar/node.hpp>
#include <nexar/numeric.hpp>
#include <nexar/operators.hpp>
#include <nexar/range.hpp>
#include <nexar/result.hpp>
#include <nexar/rpc.hpp>
#include <nexar/seed.hpp>
#include <nexar/shared_buffer.hpp>
#include <nexar/status.hpp>
#include <nexar/types.hpp>
#include <nexar/version.hpp>
#include <nexar/wait.hpp>
#include <nexar/work.hpp>
