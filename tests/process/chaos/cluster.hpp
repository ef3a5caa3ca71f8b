#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/chaos/checker.hpp"
#include "process/chaos/networks.hpp"
#include "support/temp_directory.hpp"

namespace nexar::chaos {

/// A process that the test started, and what it has said.
struct Process {
    pid_t id = -1;
    int output = -1;  // its standard output
    std::string partial{};
    std::string log{};
    int host = -1;  // in Networks
    bool stopped = false;
    // What a rank has said.
    int rank = -1;
    std::int64_t world_number = 0;
    std::vector<int> world{};
    std::vector<int> view{};  // the members of the cluster
    std::int64_t epoch = 0;   // of this view
    bool minority = false;
    bool evicted = false;
    std::string trouble{};
    // What a seed has said.
    std::string token{};
    bool formed = false;
    /// Its exit code, or 128 plus the signal, once it has ended.
    std::optional<int> ended{};
};

struct ClusterOptions {
    int ranks = 4;
    std::string link = "auto";
    std::string budget = "500ms";
    std::chrono::microseconds pace{3000};
    std::chrono::milliseconds hammer{0};
    int port = 0;                  // of all ranks, which then need a host each; 0: any free one
    Networks* networks = nullptr;  // host 0 is that of the seed, host i + 1 that of rank i
    bool second_seed = false;      // on the last host; needs Networks
};

/// Real processes that form one cluster: a seed and ranks with the workload of workload.hpp. All
/// end with this object.
class Cluster {
public:
    using Duration = std::chrono::nanoseconds;
    using Ranks = std::vector<Process*>;

    explicit Cluster(const ClusterOptions& options);
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;
    ~Cluster();

    void start_seed();
    void kill_seed();
    int second_seed_host() const { return options_.ranks + 1; }
    /// Waits until the second seed knows the members.
    bool await_second_seed(Duration within) {
        return await([this] { return second_->formed; }, within);
    }
    /// Processes that start later join through the second seed.
    void use_second_seed();
    /// Copies what the seed keeps on disk, and puts the copy back while no seed runs.
    void copy_seed_state();
    void restore_seed_state();

    /// Starts a process that joins; on this host if there are Networks.
    Process& start_rank(int host);
    /// The first host without a rank.
    int free_host() const;
    void kill(Process& process);
    void stop(Process& process);
    void resume(Process& process);

    /// The ranks that have not ended.
    Ranks living() const;
    Process& living_at(std::size_t index) const;

    /// Reads what the processes say until the condition is true; false after the timeout.
    bool await(const std::function<bool()>& condition, Duration within);
    /// Waits until all of these are in a cluster and a world with exactly each other. Returns what
    /// is missing, or an empty text.
    std::string await_world(const Ranks& ranks, Duration within);
    /// All living processes.
    std::string await_whole(Duration within) { return await_world(living(), within); }
    /// Waits until an evicted process has noticed and ended.
    std::string await_evicted(Process& process, Duration within);

    /// Starts processes until `ranks` of them run, and waits for their world.
    std::string grow_to(std::size_t ranks, Duration within);

    /// Ends all processes and checks their logs. Removes the logs.
    chaos_checker::Findings finish(const chaos_checker::Rules& rules = {});
    /// What the processes said last, for the report of a failure.
    std::string describe() const;

private:
    Process& spawn(const std::vector<std::string>& arguments, const std::string& variable,
                   int host);
    std::unique_ptr<Process> spawn_seed(const std::vector<std::string>& more,
                                        const std::string& listen, const std::string& state,
                                        int host);
    void start_second_seed();
    std::string state_directory() const { return directory_.path() + "/state"; }
    void end(Process& process);
    void hear(Process& process);
    static void take(Process& process, const std::string& line);
    static void reap(Process& process, bool wait);

    ClusterOptions options_;
    TempDirectory directory_{};
    std::string listen_{};
    std::string join_{};
    std::vector<std::unique_ptr<Process>> ranks_{};
    std::unique_ptr<Process> seed_{};
    std::unique_ptr<Process> second_{};
    int started_ = 0;
};

}  // namespace nexar::chaos
