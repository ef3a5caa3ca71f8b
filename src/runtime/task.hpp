#pragma once

#include <memory>
#include <nexar/collective_call.hpp>
#include <nexar/communicator.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/operation.hpp"
#include "runtime/completion.hpp"
#include "runtime/progress.hpp"

namespace nexar::detail {

class CommunicatorBody;
class NodeBody;

/// An operation of a user: one operation of the engine, or a send and a receive together; what one
/// may wait for; and what follows. Used again and again, so that starting costs no memory.
class Task final : public runtime::Submission {
public:
    enum class What : std::uint8_t {
        send,
        receive,
        send_and_receive,
        probe,
        message,  // receives what was taken out of matching
        call,
        collective,
        counted_collective,  // after an exchange of counts
    };

    Task() noexcept {
        send.owner = this;
        receive.owner = this;
        probe.owner = this;
    }

    NodeBody& node() const noexcept;

    /// Starts it in the engine.
    void run_under_lock() noexcept override;
    /// The same without sending what can be sent.
    void start_under_lock() noexcept;

    /// Ready to be used for something else.
    void clear() noexcept;

    /// Under the lock: ends one of the engine's operations; true: it was the last one of this task.
    bool ended(engine::Operation& operation);

    /// What the user called, for people: "receive from rank 2, tag 7".
    std::string description() const;

    /// Apart, since few tasks are calls; kept when the task is used again.
    struct CallPart {
        engine::CallOperation operation{};
        std::vector<std::byte> copied{};     // a small argument
        std::shared_ptr<const void> kept{};  // whose a large one is
    };
    /// A v-variant whose counts are exchanged first.
    struct CountedPart {
        CollectiveCall call{};
        std::unique_ptr<engine::CollectiveOperation> exchange{};
        std::vector<std::size_t> own{};
        std::vector<std::size_t> others{};
        KeptRoom* room = nullptr;
    };

    // What every task uses stands together: with thousands under way, memory is what costs.
    What what = What::send;
    int parts = 1;
    std::shared_ptr<CommunicatorBody> communicator{};
    engine::InMessage* message = nullptr;  // to receive, or what was taken
    runtime::Completion completion{};
    std::optional<Error> error{};
    Status status{};

    /// Calls the user's follower.
    class Follow final : public runtime::Continuation {
    public:
        void run() noexcept override { follower->run(); }
        Follower* follower = nullptr;
    };
    Follow follow{};
    std::unique_ptr<Held> held{};  // memory that is not the user's
    bool looked_at = false;        // somebody knows how it ended, or does not want to
    std::unique_ptr<CountedPart> counted{};
    std::unique_ptr<CallPart> call{};
    std::unique_ptr<engine::CollectiveOperation> collective{};

    // Whoever starts one sets all of it. Behind each what it refers to.
    engine::ReceiveOperation receive{};
    port::Bytes incoming{};
    std::vector<port::Bytes> incoming_list{};
    engine::SendOperation send{};
    port::ConstBytes outgoing{};
    std::vector<port::ConstBytes> outgoing_list{};
    engine::ProbeOperation probe{};

private:
    /// The counts came, or did not.
    void begin_counted(const std::optional<Error>& failure);
    /// Throws what prevents it.
    void set_counted();
};

/// Of a matched probe that has ended well.
Result<Message> take_message(Task& task);

Status status_of(const engine::Envelope& envelope) noexcept;

/// A message that was taken out of matching.
class MessageBody {
public:
    std::shared_ptr<CommunicatorBody> communicator{};
    engine::InMessage* message = nullptr;
};

}  // namespace nexar::detail
