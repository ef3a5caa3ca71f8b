#pragma once

#include <cstddef>
#include <nexar/error.hpp>
#include <optional>

#include "base/assert.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/operation.hpp"
#include "engine/recording.hpp"

namespace nexar::engine {

struct Pair;
struct Peer;

/// What messages, calls and collectives need of the engine that owns them. Everything else they
/// find in the peer, its transfers and the communicator that they are given.
class Services {
public:
    virtual ~Services() = default;

    /// The operation has ended, with `error` set or not: poll_done() will return it.
    void finish(Operation& operation) noexcept {
        NEXAR_ASSERT(operation.active);
        operation.active = false;
        if (aborted_) [[unlikely]] {
            end_with_abort(operation);
        }
        recording_.ended(operation);
        --pending_;
        done_.push_back(operation);
    }

    /// Something waits for a link to this peer.
    virtual void want(Peer& peer) = 0;

    /// Makes sure that the peer knows which communicator this is, before anything else is said in
    /// it. False: there is no link or no room now.
    virtual bool introduce(Pair& pair) = 0;

    /// Says the last words in a communicator that this side has ended. False: there is no room now.
    /// The pair may be gone afterwards.
    virtual bool say_end(Pair& pair) = 0;

    Recording& recording() noexcept { return recording_; }

protected:
    explicit Services(Recorder* recorder = nullptr) noexcept : recording_(recorder) {}
    Services(const Services&) = delete;
    Services& operator=(const Services&) = delete;

    Recording recording_;
    IntrusiveList<Operation, &Operation::done_hook> done_;  // for poll_done()
    std::size_t pending_ = 0;                               // operations that have not ended
    std::optional<Error> aborted_{};                        // the error of every end after an abort

private:
    void end_with_abort(Operation& operation) const;
};

}  // namespace nexar::engine
