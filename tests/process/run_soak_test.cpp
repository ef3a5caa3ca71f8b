// `nexar run` many times, killed at any moment.

#include <gtest/gtest.h>

#include "process/run_many_times.hpp"

namespace nexar {
namespace {

class RunSoak : public RunManyTimes {};

TEST_F(RunSoak, two_hundred_runs_leave_no_stray) {
    run_many(200);
}

}  // namespace
}  // namespace nexar
