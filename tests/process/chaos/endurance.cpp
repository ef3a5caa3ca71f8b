#include "process/chaos/endurance.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <nexar/error.hpp>
#include <vector>

#include "process/chaos/cluster.hpp"
#include "process/chaos/lossy_paths.hpp"
#include "support/network_namespace.hpp"

namespace nexar::chaos {

namespace {

using Clock = std::chrono::steady_clock;

/// Processes that use all the time they can get.
class Hogs {
public:
    explicit Hogs(int count) {
        const pid_t parent = ::getpid();
        for (int i = 0; i < count; ++i) {
            const pid_t id = ::fork();
            if (id == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (::getppid() != parent) ::_exit(3);
                for (std::atomic<unsigned> spin = 0;;) spin.fetch_add(1);
            }
            all_.push_back(id);
        }
    }
    Hogs(const Hogs&) = delete;
    Hogs& operator=(const Hogs&) = delete;
    ~Hogs() {
        for (const pid_t id : all_) {
            ::kill(id, SIGKILL);
            ::waitpid(id, nullptr, 0);
        }
    }

private:
    std::vector<pid_t> all_;
};

/// True if a rank is not in the world that formed first.
bool changed(const Cluster& cluster, std::size_t ranks) {
    const auto living = cluster.living();
    return living.size() != ranks || std::ranges::any_of(living, [](const Process* one) {
               return one->world_number != 1 || one->minority || one->evicted ||
                      !one->trouble.empty();
           });
}

void expect_nothing_noticed(Cluster& cluster) {
    const auto found = cluster.finish();
    fmt::print("{}\n", chaos_checker::describe(found));
    EXPECT_TRUE(found.wrong.empty()) << chaos_checker::describe(found);
    EXPECT_EQ(found.failures, 0) << "operations failed";
    EXPECT_EQ(found.removed, 0) << "members were evicted";
    EXPECT_EQ(found.worlds, 1) << "the world changed";
    EXPECT_GT(found.sums, 0);
}

}  // namespace

std::chrono::seconds span_from(const char* variable, std::chrono::seconds fallback) {
    const char* const given = std::getenv(variable);
    return given == nullptr ? fallback : std::chrono::seconds(std::atoi(given));
}

void restart_the_seed(std::chrono::seconds span, std::chrono::milliseconds every) {
    constexpr std::size_t kRanks = 4;
    Cluster cluster({.ranks = kRanks});
    int restarts = 0;
    for (const auto end = Clock::now() + span; Clock::now() < end; ++restarts) {
        const auto bad = [&] { return changed(cluster, kRanks); };
        ASSERT_FALSE(cluster.await(bad, every / 2)) << cluster.describe();
        cluster.kill_seed();
        ASSERT_FALSE(cluster.await(bad, every / 2)) << cluster.describe();
        cluster.start_seed();
    }
    // The members have found the new seed: a process can join.
    Process& joiner = cluster.start_rank(0);
    EXPECT_TRUE(cluster.await([&] { return !joiner.world.empty(); }, std::chrono::seconds(20)))
        << cluster.describe();
    fmt::print("{} restarts\n", restarts);
    EXPECT_GT(restarts, 0);
    const auto found = cluster.finish();
    fmt::print("{}\n", chaos_checker::describe(found));
    EXPECT_TRUE(found.wrong.empty()) << chaos_checker::describe(found);
    EXPECT_EQ(found.failures, 0) << "operations failed";
    EXPECT_LE(found.worlds, 2) << "the world changed";
}

void load_everything(std::chrono::seconds span, int hogs, std::uint64_t seed) {
    constexpr int kRanks = 8;
    if (!testing::has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
    std::unique_ptr<Networks> networks;
    try {
        networks = std::make_unique<Networks>(kRanks + 1);
    } catch (const Error& error) {
        if (error.code() != Errc::unsupported) throw;
        GTEST_SKIP() << "no namespaces for this user; run as root (" << error.what() << ")";
    }
    const LossyPaths paths(*networks, kRanks, 0.1, seed);
    Cluster cluster({.ranks = kRanks,
                     .link = "quic",
                     .pace = std::chrono::milliseconds(20),
                     .port = LossyPaths::kPort,
                     .networks = networks.get()});
    const Hogs load(hogs);
    const auto bad = [&] { return changed(cluster, kRanks); };
    EXPECT_FALSE(cluster.await(bad, span)) << cluster.describe();
    fmt::print("{}\n", paths.describe());
    expect_nothing_noticed(cluster);
}

}  // namespace nexar::chaos
