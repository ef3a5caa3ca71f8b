#pragma once

#include <memory>
#include <string>
#include <vector>

#include "process/running_program.hpp"
#include "support/temp_directory.hpp"

namespace nexar::testing {

/// Where a program is: in /usr/bin or /usr/sbin; empty when it is not installed.
std::string installed(const std::string& program);

/// A Slurm of its own on this machine, with everything in a temporary directory: munged, slurmctld
/// and two slurmd, whose node names only Slurm knows. Ends with the object.
class SlurmCluster {
public:
    /// Why it cannot be started here; empty when it can.
    static std::string why_not();

    /// Waits until both nodes are idle. Throws when that takes too long.
    SlurmCluster();
    SlurmCluster(const SlurmCluster&) = delete;
    SlurmCluster& operator=(const SlurmCluster&) = delete;
    ~SlurmCluster();

    /// For srun and sbatch; with PATH and HOME.
    std::vector<std::string> environment() const;
    std::string file(const std::string& name) const { return (directory_ / name).string(); }

private:
    void write_config() const;
    void start(const std::string& program, std::vector<std::string> arguments);
    std::string errors() const;

    TempDirectory directory_;
    std::vector<std::unique_ptr<RunningProgram>> daemons_;
};

}  // namespace nexar::testing
