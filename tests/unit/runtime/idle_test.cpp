// The CPU time of nodes that wait, which does not depend on the load of the machine.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <nexar/nexar.hpp>
#include <span>
#include <string>
#include <thread>

namespace nexar {
namespace {

using namespace std::chrono_literals;

std::chrono::microseconds used() {
    rusage usage{};
    EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
    const auto duration = [](const timeval& time) {
        return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return duration(usage.ru_utime) + duration(usage.ru_stime);
}

class Idle : public ::testing::TestWithParam<std::string> {};

TEST_P(Idle, a_receive_that_never_matches_uses_less_than_5_percent_of_a_processor) {
    for (const auto progressing : {Progressing::background, Progressing::user_loop}) {
        auto nodes = local_cluster(2, {.progressing = progressing, .link = GetParam()});
        int value = 0;
        Work<Status> never = nodes[0].world().recv(std::span(&value, 1), 1, 99);
        EXPECT_FALSE(never.wait_for(10ms));  // what the formation left to do
        const auto before = used();
        EXPECT_FALSE(never.wait_for(1s));
        EXPECT_LT(used() - before, 50ms);
        never.cancel();
    }
}

TEST_P(Idle, nodes_whose_callers_compute_nothing_use_less_than_5_percent_of_a_processor) {
    auto nodes = local_cluster(2, {.link = GetParam()});
    const auto before = used();
    std::this_thread::sleep_for(1s);
    EXPECT_LT(used() - before, 50ms);
}

INSTANTIATE_TEST_SUITE_P(Over, Idle, ::testing::Values("quic", "shm"),
                         [](const auto& link) { return link.param; });

}  // namespace
}  // namespace nexar
