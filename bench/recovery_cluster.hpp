#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <nexar/seed.hpp>
#include <random>
#include <string>
#include <vector>

#include "recovery_notice.hpp"

namespace nexar::bench {

/// The times of one failure in milliseconds: at the last survivor.
struct Loss {
    double noticed = 0;
    double reduced = 0;  // correct all-reduce on the shrunk communicator; 0 if not measured
};

/// The times of one join in milliseconds.
struct Growth {
    double join = 0;      // from join() to the first collective of the new process
    double pause = 0;     // the longest pause of the traffic of any other rank
    std::string parts{};  // of the join, and of the longest pause
};

/// Processes on this host that form one cluster, with the seed in this process. Fails with
/// std::runtime_error if an event takes too long or a rank reports an error.
class RecoveryCluster {
public:
    RecoveryCluster(int ranks, const std::string& link, std::uint64_t random_seed);
    RecoveryCluster(const RecoveryCluster&) = delete;
    RecoveryCluster& operator=(const RecoveryCluster&) = delete;
    ~RecoveryCluster();

    /// Kills a random rank.
    Loss kill();
    /// Stops a random rank, and kills it after it was evicted.
    Loss stop();
    /// Starts a process that joins.
    Growth grow();

private:
    struct Process {
        pid_t id = -1;
        int rank = -1;
    };

    void start();
    Loss lose(int signal);
    Notice next(std::int64_t deadline, const std::string& what);
    void end(const Process& process);
    Process& find(pid_t id);

    std::mt19937_64 random_;
    Seed seed_;
    std::string join_;
    int pipe_[2] = {-1, -1};
    std::vector<Process> processes_;
};

}  // namespace nexar::bench
