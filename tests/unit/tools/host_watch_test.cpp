#include "run/host_watch.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace nexar::run {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kWatchStart{100s};

HostWatch watch() {
    return {{.unit = "host b (rank 2)", .remote_nexar = "/opt/nexar", .timeout = 15s}, kWatchStart};
}

Ended code(int number) {
    return {.number = number};
}

TEST(HostWatchTest, host_may_start_slowly_but_not_be_silent_for_long_afterwards) {
    HostWatch host = watch();
    EXPECT_EQ(host.deadline(), kWatchStart + 60s);
    EXPECT_EQ(host.why_lost(), "host b (rank 2) did not start its ranks within 1m");
    host.on_heard(kWatchStart + 1s);  // from ssh
    EXPECT_EQ(host.deadline(), kWatchStart + 61s);
    host.on_started(kWatchStart + 5s);
    EXPECT_EQ(host.deadline(), kWatchStart + 17s) << "a cut connection is noticed within 15 s";
    host.on_heard(kWatchStart + 8s);
    EXPECT_EQ(host.deadline(), kWatchStart + 20s);
    EXPECT_EQ(host.why_lost(),
              "the connection to host b (rank 2) is lost: it has been silent for 12s");
}

TEST(HostWatchTest, host_that_sends_every_heartbeat_is_never_lost) {
    HostWatch host = watch();
    host.on_started(kWatchStart);
    TimePoint now = kWatchStart;
    for (int i = 0; i < 3; ++i) {
        now += beat_of(15s);
        EXPECT_LT(now, host.deadline()) << "two heartbeats may be late";
    }
}

TEST(HostWatchTest, says_whether_ssh_or_the_host_failed) {
    HostWatch host = watch();
    EXPECT_EQ(host.explain(code(255)), "ssh could not connect or log in to host b (rank 2)");
    EXPECT_EQ(host.explain(code(127)),
              "host b (rank 2) cannot run the command `/opt/nexar`: install nexar there, or give "
              "its path with --remote-nexar");
    EXPECT_EQ(host.explain(code(126)), host.explain(code(127)));
    EXPECT_EQ(host.explain(code(1)), "host b (rank 2) exited with code 1 before it started a rank");
    EXPECT_EQ(host.explain({.by_signal = true, .number = SIGKILL}),
              "the ssh process for host b (rank 2) was killed by signal 9 (SIGKILL)");
    host.on_started(kWatchStart);
    EXPECT_FALSE(host.finished());
    EXPECT_EQ(host.explain(code(255)), "ssh lost the connection to host b (rank 2)");
    EXPECT_EQ(host.explain(code(137)),
              "host b (rank 2) exited with code 137 without reporting its end");
    host.on_finished();
    EXPECT_TRUE(host.finished());
    for (const int number : {1, 127, 255}) {
        EXPECT_EQ(host.explain(code(number)),
                  "host b (rank 2) exited with code " + std::to_string(number))
            << "that is the exit code of its ranks";
    }
}

}  // namespace
}  // namespace nexar::run
