#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/buffer.hpp>
#include <nexar/collective_operation.hpp>
#include <nexar/export.hpp>
#include <nexar/operators.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <span>
#include <vector>

namespace nexar {

/// How one collective is run.
struct CollectiveOptions {
    /// How long it may take until all ranks give it up with Errc::timed_out; 0 is the setting
    /// collective_timeout.
    std::chrono::nanoseconds timeout{};
};

namespace detail {

class CommunicatorBody;

/// A call of a collective, as the user made it. Which buffers are looked at depends on operation
/// and rank. Where the input is exactly the part of the output in which it would stand, the
/// collective runs in place; any other overlap is refused.
struct CollectiveCall {
    schedule::Operation operation = schedule::Operation::barrier;
    ConstBuffer input{};
    Buffer output{};
    std::optional<std::vector<Buffer>> buckets{};  // in place of both: one vector, many places
    AnyOperator op{};
    int root = 0;
    /// Of a v-variant: elements per rank; of all_to_all how the input divides by receiver.
    std::optional<std::vector<std::size_t>> counts{};
    /// all_to_all: how the output divides by sender.
    std::vector<std::size_t> receive_counts{};
    CollectiveOptions options{};
};

/// Throws nexar::Error for a call that makes no sense.
NEXAR_EXPORT TaskOwner start_collective(const std::shared_ptr<CommunicatorBody>& communicator,
                                        const CollectiveCall& call);

/// While one lives, what this thread starts is held back, and then started at once.
class NEXAR_EXPORT Together {
public:
    Together();
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;
    ~Together();

private:
    bool outermost_;
};

}  // namespace detail

}  // namespace nexar
