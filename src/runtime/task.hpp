#pragma once

#include <memory>
#include <nexar/communicator.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <vector>

#include "engine/engine.hpp"
#include "engine/operation.hpp"
#include "runtime/completion.hpp"
#include "runtime/progress.hpp"

namespace nexar::detail {

class NodeBody;

/// An operation of a user: one operation of the engine, or a send and a receive together; what one
/// may wait for; and what follows. Used again and again, so that starting costs no memory.
class Task final : public runtime::Posted {
public:
    enum class What : std::uint8_t {
        send,
        receive,
        send_and_receive,
        probe,
        message  // receives what was taken out of matching
    };

    Task() noexcept {
        send.owner = this;
        receive.owner = this;
        probe.owner = this;
    }

    /// Starts it in the engine.
    void run_under_lock() noexcept override;

    /// As new, but for memory that it keeps.
    void clear() noexcept;

    /// Ends one of the engine's operations; true: it was the last one of this task.
    bool ended(engine::Operation& operation);

    What what = What::send;
    std::shared_ptr<NodeBody> node{};
    engine::Context* context = nullptr;
    engine::SendOperation send{};
    engine::ReceiveOperation receive{};
    engine::ProbeOperation probe{};
    engine::InMessage* message = nullptr;  // to receive, or what was taken

    // The lists that the operations refer to.
    port::ConstBytes outgoing{};
    port::Bytes incoming{};
    std::vector<port::ConstBytes> outgoing_list{};
    std::vector<port::Bytes> incoming_list{};

    int parts = 1;
    std::optional<Error> error{};
    Status status{};
    runtime::Completion completion{};

    /// Calls the user's follower.
    class Follow final : public runtime::Continuation {
    public:
        void run() noexcept override { follower->run(); }
        Follower* follower = nullptr;
    };
    Follow follow{};
};

Status status_of(const engine::Envelope& envelope) noexcept;

/// A message that was taken out of matching.
class MessageBody {
public:
    std::shared_ptr<NodeBody> node{};
    engine::InMessage* message = nullptr;
};

}  // namespace nexar::detail
