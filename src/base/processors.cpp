#include "base/processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace nexar {

namespace {

constexpr std::size_t kMostProcessors = std::size_t{1} << 16U;

// A smaller quota is a mistake in the configuration.
constexpr double kLeast = 0.01;

/// The number of processors in the mask of a process (0: the calling thread); 0 if the kernel does
/// not tell.
int processors_in_mask(pid_t process) {
    // The mask must have room for every processor that the kernel can have.
    for (std::size_t bits = CPU_SETSIZE; bits <= kMostProcessors; bits *= 2) {
        std::vector<cpu_set_t> mask(bits / CPU_SETSIZE);
        const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
        if (::sched_getaffinity(process, bytes, mask.data()) == 0) {
            return CPU_COUNT_S(bytes, mask.data());
        }
        if (errno != EINVAL) break;
    }
    return 0;
}

using Quota = std::optional<double>;

Quota smaller(Quota a, Quota b) {
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
}

Quota quota_of(double per_period, double period) {
    if (!(per_period > 0) || !(period > 0)) return std::nullopt;
    return per_period / period;
}

/// Version 2: "max 100000" or "150000 100000", in microseconds.
Quota quota_v2(const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    double per_period = 0;
    double period = 0;
    if (!(file >> per_period >> period)) return std::nullopt;
    return quota_of(per_period, period);
}

/// Version 1: the quota is -1 where there is none.
Quota quota_v1(const std::string& folder) {
    std::ifstream quota(folder + "/cpu.cfs_quota_us");
    std::ifstream length(folder + "/cpu.cfs_period_us");
    double per_period = 0;
    double period = 0;
    if (!(quota >> per_period) || !(length >> period)) return std::nullopt;
    return quota_of(per_period, period);
}

/// The smallest quota from `group` up to the mount point. Folders that do not exist have none: in a
/// container the mount point often is the group itself, whose path is that of the host.
Quota smallest_on_path(const std::string& mount, std::string_view group,
                       Quota (*quota)(const std::string& folder)) {
    Quota smallest = quota(mount);
    if (group.find("..") != std::string_view::npos) return smallest;  // outside of the mount
    while (group.size() > 1) {
        smallest = smaller(smallest, quota(mount + std::string(group)));
        group = group.substr(0, group.rfind('/'));
    }
    return smallest;
}

bool names_cpu(std::string_view controllers) {
    std::istringstream names{std::string(controllers)};
    for (std::string name; std::getline(names, name, ',');) {
        if (name == "cpu") return true;
    }
    return false;
}

}  // namespace

std::optional<double> cpu_quota(const std::string& root) {
    const std::string mount = root + "/sys/fs/cgroup";
    Quota smallest;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        // "4:cpu,cpuacct:/a/b", or "0::/a/b" for version 2
        const auto first = line.find(':');
        const auto second = line.find(':', first == std::string::npos ? first : first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string group = line.substr(second + 1);
        if (controllers.empty()) {
            for (const char* place : {"", "/unified"}) {
                smallest = smaller(smallest, smallest_on_path(mount + place, group, quota_v2));
            }
        } else if (names_cpu(controllers)) {
            for (const std::string& place : {controllers, std::string("cpu")}) {
                std::string folder = mount;
                folder.append("/").append(place);
                smallest = smaller(smallest, smallest_on_path(folder, group, quota_v1));
            }
        }
    }
    return smallest;
}

double usable_processors() {
    const int mine = processors_in_mask(::getpid());
    const int of_parent = processors_in_mask(::getppid());
    const double allowed = std::max({mine, of_parent, 1});
    return std::max(std::min(allowed, cpu_quota().value_or(allowed)), kLeast);
}

}  // namespace nexar
