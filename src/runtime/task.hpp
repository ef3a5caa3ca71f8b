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

/// An operation of a user: one operation of the engine, or a send and a receive together, with its
/// completion and its continuation. Tasks are reused, so that starting one allocates no memory.
class Task final : public runtime::Submission {
public:
    enum class What : std::uint8_t {
        send,
        receive,
        send_and_receive,
        probe,
        message,  // receives a message that a probe removed from matching
        call,
        collective,
        counted_collective,  // after an exchange of counts
        agreement,
        failures,  // waits for a member to fail
    };

    Task() noexcept {
        send.owner = this;
        receive.owner = this;
        probe.owner = this;
    }

    NodeBody& node() const noexcept;

    void run_under_lock() noexcept override;
    void run_by_poster() noexcept override;
    /// Under the lock: starts the operation.
    void start(engine::Engine& engine) noexcept;

    /// Makes the task ready for reuse.
    void clear() noexcept;

    /// Under the lock: ends one of the engine's operations. Returns true if it was the last one of
    /// this task.
    bool ended(engine::Operation& operation, engine::Engine& engine);

    /// Describes the operation for messages: "receive from rank 2, tag 7".
    std::string description() const;

    /// Allocated separately, because few tasks are calls; kept when the task is reused.
    struct CallPart {
        engine::CallOperation operation{};
        std::vector<std::byte> copied{};     // owns a small argument
        std::shared_ptr<const void> kept{};  // owns a large argument
    };
    /// A v-variant whose counts are exchanged first.
    struct CountedPart {
        CollectiveCall call{};
        std::unique_ptr<engine::CollectiveOperation> exchange{};
        std::vector<std::size_t> own{};
        std::vector<std::size_t> others{};
        KeptRoom* room = nullptr;
    };

    // The fields that every task uses are adjacent: with thousands of tasks in flight, cache misses
    // dominate the cost.
    What what = What::send;
    int parts = 1;
    std::shared_ptr<CommunicatorBody> communicator{};
    engine::InMessage* message = nullptr;  // to receive, or found by the probe
    runtime::Completion completion{};
    std::optional<Error> error{};
    Status status{};

    /// Runs the user's follower.
    class Follow final : public runtime::Continuation {
    public:
        void run() noexcept override { follower->run(); }
        Follower* follower = nullptr;
    };
    Follow follow{};
    std::unique_ptr<Held> held{};  // memory that the task owns
    bool looked_at = false;        // the user has seen the outcome or does not want to
    bool posting = false;          // its starter has not returned: no other thread knows it
    Task* next_spare = nullptr;
    std::unique_ptr<CountedPart> counted{};
    std::unique_ptr<CallPart> call{};
    std::unique_ptr<engine::AgreeOperation> agreement{};
    std::size_t known = 0;  // failures
    std::unique_ptr<engine::CollectiveOperation> collective{};

    // The starter sets all fields of the one that it uses. Each is followed by what it refers to.
    engine::ReceiveOperation receive{};
    port::Bytes incoming{};
    std::vector<port::Bytes> incoming_list{};
    engine::SendOperation send{};
    port::ConstBytes outgoing{};
    std::vector<port::ConstBytes> outgoing_list{};
    engine::ProbeOperation probe{};

private:
    /// Called when the exchange of counts has completed or failed.
    void begin_counted(engine::Engine& engine, const std::optional<Error>& failure);
    /// Throws nexar::Error if the counts are invalid, or std::bad_alloc.
    void set_counted();
};

/// A send that ended without error, for sends that need no task. Shared; never destroyed or
/// changed.
Task& sent_task();

/// The message that a successful matched probe found.
Result<Message> take_message(Task& task);

Status status_of(const engine::Envelope& envelope) noexcept;

/// A message that a matched probe removed from matching.
class MessageBody {
public:
    std::shared_ptr<CommunicatorBody> communicator{};
    engine::InMessage* message = nullptr;
};

}  // namespace nexar::detail
