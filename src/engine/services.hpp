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

/// What messages, calls and collectives use of the engine that owns them. Everything else they need
/// is in the peer, its transfers and the communicator passed to them.
class Services {
public:
    virtual ~Services() = default;

    /// Ends the operation, with or without `error` set: poll_done() will return it.
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

    /// Asks for a link to this peer, because something waits for it.
    virtual void want(Peer& peer) = 0;

    /// Called after this node wrote something to its shared memory that the peer may be waiting
    /// for, possibly asleep.
    virtual void nudge(Peer& /*peer*/) {}

    /// Introduces the communicator to the peer, before anything else is sent in it. Returns false
    /// if there is no link or no room now.
    virtual bool introduce(Pair& pair) = 0;

    /// Sends the last frames of a communicator that this side has ended. Returns false if there is
    /// no room now. The pair may be destroyed afterwards.
    virtual bool say_end(Pair& pair) = 0;

    Recording& recording() noexcept { return recording_; }

    /// Why no operation may run now: this node is in a minority, or was evicted.
    const std::optional<Error>& halted() const noexcept { return halted_; }

protected:
    explicit Services(Recorder* recorder = nullptr) noexcept : recording_(recorder) {}
    Services(const Services&) = delete;
    Services& operator=(const Services&) = delete;

    Recording recording_;
    IntrusiveList<Operation, &Operation::done_hook> done_;  // for poll_done()
    std::size_t pending_ = 0;                               // operations that have not ended
    std::optional<Error> aborted_{};  // the error of every operation after an abort
    std::optional<Error> halted_{};

private:
    void end_with_abort(Operation& operation) const;
};

}  // namespace nexar::engine
