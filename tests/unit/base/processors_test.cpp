#include "base/processors.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_directory.hpp"

namespace nexar {
namespace {

/// A root directory with control groups.
class FakeRoot {
public:
    explicit FakeRoot(const std::string& groups_of_self) {
        write("proc/self/cgroup", groups_of_self);
    }

    void write(const std::string& path, const std::string& text) const {
        const auto file = std::filesystem::path(root_.path()) / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    void quota_v1(const std::string& folder, const std::string& quota) const {
        write("sys/fs/cgroup/" + folder + "/cpu.cfs_quota_us", quota + "\n");
        write("sys/fs/cgroup/" + folder + "/cpu.cfs_period_us", "100000\n");
    }
    std::optional<double> quota() const { return cpu_quota(root_.path()); }

private:
    TempDirectory root_;
};

TEST(CpuQuota, is_absent_where_control_groups_are_absent_or_unreadable) {
    EXPECT_EQ(cpu_quota(TempDirectory().path()), std::nullopt);
    EXPECT_EQ(FakeRoot("0::/\n").quota(), std::nullopt);
    EXPECT_EQ(FakeRoot("nonsense\n:\n0:\n\n0::/job\n").quota(), std::nullopt);
    const FakeRoot strange("0::/job\n");
    strange.write("sys/fs/cgroup/job/cpu.max", "many few\n");
    EXPECT_EQ(strange.quota(), std::nullopt);
    strange.write("sys/fs/cgroup/job/cpu.max", "100000 0\n");
    EXPECT_EQ(strange.quota(), std::nullopt);
}

TEST(CpuQuota, of_version_2_is_the_smallest_on_the_path_to_the_root) {
    const FakeRoot root("0::/pods/job/rank\n");
    root.write("sys/fs/cgroup/pods/job/rank/cpu.max", "max 100000\n");
    EXPECT_EQ(root.quota(), std::nullopt);
    root.write("sys/fs/cgroup/pods/cpu.max", "600000 100000\n");
    EXPECT_EQ(root.quota(), 6.0);
    root.write("sys/fs/cgroup/pods/job/cpu.max", "75000 50000\n");
    EXPECT_EQ(root.quota(), 1.5);
    root.write("sys/fs/cgroup/pods/job/rank/cpu.max", "400000 100000\n");
    EXPECT_EQ(root.quota(), 1.5);
    root.write("sys/fs/cgroup/pods/other/cpu.max", "1000 100000\n");
    EXPECT_EQ(root.quota(), 1.5);
}

TEST(CpuQuota, of_version_2_is_that_of_the_mount_point_in_a_container) {
    const FakeRoot inside("0::/\n");
    inside.write("sys/fs/cgroup/cpu.max", "250000 100000\n");
    EXPECT_EQ(inside.quota(), 2.5);
    const FakeRoot outside("0::/../other\n");
    outside.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
    outside.write("sys/fs/other/cpu.max", "50000 100000\n");
    EXPECT_EQ(outside.quota(), 1.5);
}

TEST(CpuQuota, of_version_1_is_that_of_the_cpu_controller) {
    const FakeRoot root("3:cpuset:/set\n2:cpu,cpuacct:/job/rank\n1:memory:/job\n0::/\n");
    root.quota_v1("cpu,cpuacct/job/rank", "-1");
    root.quota_v1("cpuset/set", "10000");
    EXPECT_EQ(root.quota(), std::nullopt);
    root.quota_v1("cpu,cpuacct/job", "350000");
    EXPECT_EQ(root.quota(), 3.5);
    // A host that mounts the controllers under one name only.
    const FakeRoot plain("2:cpuacct,cpu:/docker/0123\n");
    plain.quota_v1("cpu", "50000");
    EXPECT_EQ(plain.quota(), 0.5);
}

TEST(CpuQuota, is_the_smaller_one_where_both_versions_are_mounted) {
    const FakeRoot root("1:cpu:/job\n0::/user\n");
    root.quota_v1("cpu/job", "300000");
    root.write("sys/fs/cgroup/unified/user/cpu.max", "200000 100000\n");
    EXPECT_EQ(root.quota(), 2.0);
}

TEST(UsableProcessors, are_not_more_than_the_machine_has) {
    EXPECT_GT(usable_processors(), 0);
    EXPECT_LE(usable_processors(), static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

int usable_in_child(bool grandchild) {
    const pid_t child = ::fork();
    if (child == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
        ::sched_setaffinity(0, sizeof one, &one);
        ::_exit(grandchild ? usable_in_child(false) : static_cast<int>(usable_processors()));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

// The launcher bound the child; where the launcher itself may use one processor, all ranks share
// it.
TEST(UsableProcessors, are_those_of_the_launcher_if_it_may_use_more) {
    if (usable_processors() < 2) GTEST_SKIP() << "needs two processors";
    EXPECT_EQ(usable_in_child(false), static_cast<int>(usable_processors()));
    EXPECT_EQ(usable_in_child(true), 1);
}

}  // namespace
}  // namespace nexar
