#pragma once

namespace nexar::engine {

class Operation;
struct Pair;
struct Peer;

/// What messages, calls and collectives need of the engine that owns them. Everything else they
/// find in the peer, its transfers and the communicator that they are given.
class Services {
public:
    virtual ~Services() = default;

    /// The operation has ended, with `error` set or not: poll_done() will return it.
    virtual void finish(Operation& operation) = 0;

    /// Something waits for a link to this peer.
    virtual void want(Peer& peer) = 0;

    /// Makes sure that the peer knows which communicator this is, before anything else is said in
    /// it. False: there is no link or no room now.
    virtual bool introduce(Pair& pair) = 0;

    /// Says the last words in a communicator that this side has ended. False: there is no room now.
    /// The pair may be gone afterwards.
    virtual bool say_end(Pair& pair) = 0;
};

}  // namespace nexar::engine
