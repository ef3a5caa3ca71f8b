#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/nexar.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nexar::testing {

/// Checked traffic between all ranks of a world. In each round every rank exchanges a small and a
/// large message with every other one, calls a function of every other one, and takes part in
/// all-reduces of 8 bytes and of 4 MiB.
class Traffic {
public:
    using Time = std::chrono::steady_clock::time_point;

    /// Serves the functions that the other ranks call. They may call them after started().
    explicit Traffic(Node& node);
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;
    ~Traffic();

    /// Waits until all ranks serve their functions.
    void started();

    /// Runs one round. Throws Error if an operation fails or its result is wrong.
    void run_round();

    /// How a round ended whose operations may fail.
    struct Ended {
        bool all_succeeded = true;
        Time first_failure{};
        /// When the last of the operations ended that need `lost`: those with it, and collectives.
        Time last_failure{};
        std::vector<std::string> wrong{};  // failures that do not name `lost`, wrong results, hangs
    };
    /// Runs one round in which `lost` may be killed. Cancels operations with other ranks after a
    /// failure: these ranks may have stopped.
    Ended run_round_without(int lost, Time hangs_at);

    std::uint64_t rounds() const noexcept { return round_; }

private:
    /// An operation in flight.
    class Operation;
    using Operations = std::vector<std::unique_ptr<Operation>>;

    Operations start_round();
    void start_messages(Operations& all, int peer);
    void start_call(Operations& all, int peer);
    void start_collectives(Operations& all);
    std::vector<std::uint32_t>& vector(std::size_t elements);

    Node* node_;
    Communicator world_;
    std::uint64_t round_ = 0;
    std::vector<std::unique_ptr<std::vector<std::uint32_t>>> memory_{};
    Served sums_{};
};

}  // namespace nexar::testing
