#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <nexar/nexar.hpp>
#include <optional>
#include <string>
#include <vector>

#include "process/chaos/journal.hpp"
#include "process/chaos/watchdog.hpp"

namespace nexar::chaos {

struct WorkloadOptions {
    std::chrono::microseconds pace{3000};  // of the steps
    /// How long an evicted process continues to use its old communicators.
    std::chrono::milliseconds hammer{0};
    /// Steps between two checkpoints.
    std::uint64_t checkpoint_every = 5;
};

/// What a rank of a chaos test does: checked all-reduces, ledgered messages and remote procedure
/// calls, in one world after the other. Worlds are numbered; the number of a new world is one more
/// than that of the world from which it was made. Everything that the checker must know is in the
/// journal.
class Workload {
public:
    Workload(Journal& journal, const WorkloadOptions& options);

    /// Returns the exit code when this process was evicted; otherwise runs until it is killed.
    int run();

    static constexpr int kEvicted = 42;
    static constexpr int kHung = 43;

private:
    void step();
    void reduce(std::uint64_t n);
    void message(std::uint64_t n);
    void call(std::uint64_t n);
    void checkpoint();
    void tell_view();

    /// Takes the newest world of the node and agrees on its number.
    void enter(const Communicator& world, std::int64_t parent);
    /// Returns false if this process was evicted.
    bool recover(Error error);
    void note_failure(const Error& error);
    int hammer();
    [[noreturn]] void hang(const char* call);

    Journal& journal_;
    WorkloadOptions options_;
    Watchdog watchdog_;
    Node node_;
    int rank_;
    Served served_;
    SharedBuffer<std::int64_t> shared_;
    std::optional<Communicator> world_{};
    std::vector<int> members_{};
    std::int64_t number_ = 0;  // of the world; 0: none yet
    std::uint64_t step_ = 0;
    std::uint64_t epoch_ = 0;  // of the last view that was logged
    std::uint64_t next_id_ = 0;
    std::chrono::steady_clock::time_point next_{};
};

}  // namespace nexar::chaos
