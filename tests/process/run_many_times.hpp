#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>

#include "process/run_fixture.hpp"
#include "support/seed.hpp"

namespace nexar {

// The processes of each rank: itself, a child, a child in its own session, and one that also lost
// its parent and its standard streams.
inline constexpr const char* kFamily =
    "sleep 1000 & setsid sleep 1000 & (setsid setsid sleep 1000 </dev/null >/dev/null 2>&1 &); "
    "echo ready; trap '' TERM INT; while :; do sleep 1000; done";
inline constexpr std::size_t kFamilySize = 5;  // including the sleep that the rank waits for

class RunOrphans : public RunFixture {
protected:
    pid_t keeper() const {
        for (const pid_t pid : processes_with(mark())) {
            if (name_of_process(pid) == "nexar-keeper") return pid;
        }
        return -1;
    }
};

/// Runs that end in different ways, one after the other.
class RunManyTimes : public RunOrphans {
protected:
    void run_many(int runs) {
        std::mt19937_64 random(test_seed(5));
        for (int i = 0; i < runs && !HasFailure(); ++i) {
            SCOPED_TRACE("run " + std::to_string(i));
            switch (i % 4) {
                case 0:
                    EXPECT_EQ(run({"-n", "4"}, "echo $NEXAR_RANK").exit_code, 0);
                    break;
                case 1:
                    EXPECT_EQ(run({"-n", "4"}, kFailing).exit_code, 5);
                    break;
                case 2:
                    kill_when_ready();
                    break;
                default:
                    kill_after(std::chrono::microseconds(random() % 20000));
                    break;
            }
            EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
        }
    }

private:
    void kill_when_ready() {
        auto program = start({"-n", "4"}, kFamily);
        EXPECT_TRUE(program->writes("ready\n", 4));
        program->send(SIGKILL);
        EXPECT_EQ(program->wait(), 128 + SIGKILL);
    }

    /// May hit the moment in which the ranks are being started.
    void kill_after(std::chrono::microseconds time) {
        auto program = start({"-n", "4"}, kFamily);
        // This sleep waits for nothing: the test is about the moment of the kill.
        std::this_thread::sleep_for(time);
        program->send(SIGKILL);
        EXPECT_EQ(program->wait(), 128 + SIGKILL);
    }

    static constexpr const char* kFailing =
        "if [ $NEXAR_RANK = 3 ]; then exit 5; fi; sleep 1000 & setsid sleep 1000 & wait";
};

}  // namespace nexar
