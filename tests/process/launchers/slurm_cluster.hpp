#pragma once

#include <memory>
#include <string>
#include <vector>

#include "process/running_program.hpp"
#include "support/temp_directory.hpp"

namespace nexar::testing {

/// The path of a program in /usr/bin or /usr/sbin; empty if it is not installed.
std::string installed(const std::string& program);

/// A private Slurm cluster on this machine, with all its files in a temporary directory: munged,
/// slurmctld and two slurmd, whose node names are unknown to DNS. Ends with the object.
class SlurmCluster {
public:
    /// Why Slurm cannot be started here; empty if it can.
    static std::string why_not();

    /// Waits until both nodes are idle. Throws if that takes too long.
    SlurmCluster();
    SlurmCluster(const SlurmCluster&) = delete;
    SlurmCluster& operator=(const SlurmCluster&) = delete;
    ~SlurmCluster();

    /// The environment for srun and sbatch, including PATH and HOME.
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
