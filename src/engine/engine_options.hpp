#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/result.hpp>

#include "base/recorder.hpp"
#include "base/time.hpp"
#include "engine/call.hpp"
#include "engine/collective_runner.hpp"
#include "engine/credit.hpp"
#include "port/shared_memory.hpp"
#include "wire/limits.hpp"

namespace nexar::engine {

/// The limits of an engine. Those that peers rely on must be equal on all members.
struct EngineOptions {
    /// A message of at most this many bytes is copied at the sender and travels with its header.
    std::size_t eager_limit = std::size_t{16} * 1024;
    /// The part of a larger message that may travel before it is matched.
    std::size_t bulk_head = wire::kBulkHeadBytes;
    /// What a peer may have in flight unmatched: in all communicators together, and in addition in
    /// each.
    Amount shared{.payload = std::uint64_t{1024} * 1024, .headers = 16384};
    Amount reserve{.payload = std::uint64_t{64} * 1024, .headers = 64};
    /// The most operations that may be pending.
    std::size_t max_pending = std::size_t{1} << 20U;
    /// Communicators that a peer may use before this side has made them.
    std::size_t max_early_contexts = 16384;
    /// Communicators that a peer may use after this side has ended them.
    std::size_t max_ended_contexts = 4096;
    /// Control frames queued for a peer that does not read. A peer with a larger backlog is
    /// disconnected.
    std::size_t max_control_backlog = 65536;
    CallLimits calls{};
    CollectiveLimits collectives{};
    /// How long a cancelled operation waits for a peer that knows of it: for the outcome of a
    /// message that was sent, or for the rest of a matched message.
    Duration cancel_patience = std::chrono::milliseconds(50);
    /// Somebody decides on the members of the cluster: operations with a peer whose links broke
    /// stay pending until evict(), set_unreachable() or give_up().
    bool awaits_verdicts = false;
    /// Affects speed only, see KeyedQueues.
    std::uint64_t hash_seed = 0;
    /// Makes memory that peers on the same host can read; empty: there is none.
    std::function<Result<std::shared_ptr<port::SharedMemory>>(std::size_t bytes)> allocate_shared{};
    /// Records operations, matches, waits and links, see EventKind; must outlive the engine.
    /// nullptr: nothing is recorded.
    Recorder* recorder = nullptr;
};

}  // namespace nexar::engine
