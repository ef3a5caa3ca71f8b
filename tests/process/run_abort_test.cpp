// A rank of `nexar run` aborts the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "process/run_fixture.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class RunAbort : public RunFixture {
protected:
    Outcome abort(const std::string& ranks, const std::vector<std::string>& arguments,
                  const std::string& setting = "exit",
                  const std::string& on_failure = "end") const {
        std::vector<std::string> line{"run",
                                      "-n",
                                      ranks,
                                      "--on-failure",
                                      on_failure,
                                      "--grace",
                                      "1s",
                                      "--env",
                                      "NEXAR_ON_ABORT=" + setting,
                                      "--",
                                      NEXAR_ABORTING_RANK};
        line.insert(line.end(), arguments.begin(), arguments.end());
        const auto begun = std::chrono::steady_clock::now();
        Outcome outcome = run_program(NEXAR_COMMAND, line, environment());
        EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s) << "it hung";
        return outcome;
    }

    static std::string sentence(int rank, int code) {
        return "rank " + std::to_string(rank) + " aborted the program with code " +
               std::to_string(code) + ": the input file has no header";
    }
};

TEST_F(RunAbort, exit_ends_all_ranks_with_the_code_and_names_the_aborting_rank) {
    for (const std::string ranks : {"1", "2", "3", "5"}) {
        SCOPED_TRACE(ranks + " ranks");
        const int last = std::stoi(ranks) - 1;
        const Outcome outcome = abort(ranks, {std::to_string(last), "3", "uncaught"});
        EXPECT_EQ(outcome.exit_code, 3) << outcome.errors;
        EXPECT_THAT(outcome.errors, HasSubstr("nexar run: " + sentence(last, 3)));
        EXPECT_THAT(outcome.errors, Not(HasSubstr("nexar run: rank 0 was killed")));
        EXPECT_THAT(outcome.output, HasSubstr("[" + std::to_string(last) + "] met\n"));
        EXPECT_THAT(outcome.output, Not(HasSubstr("returned")));
    }
}

TEST_F(RunAbort, ends_a_run_that_would_outlive_failures) {
    for (const char* mode : {"continue", "restart"}) {
        const Outcome outcome = abort("3", {"1", "3", "uncaught"}, "exit", mode);
        EXPECT_EQ(outcome.exit_code, 3) << outcome.errors;
        EXPECT_THAT(outcome.errors, HasSubstr("nexar run: " + sentence(1, 3)));
        EXPECT_THAT(outcome.errors, Not(HasSubstr("continue\n")));
        EXPECT_THAT(outcome.errors, Not(HasSubstr("starts in")));
    }
}

TEST_F(RunAbort, exit_turns_a_code_out_of_range_into_status_1) {
    for (const std::string code : {"0", "256", "-1"}) {
        const Outcome outcome = abort("2", {"0", code, "uncaught"});
        EXPECT_EQ(outcome.exit_code, 1) << outcome.errors;
        EXPECT_THAT(outcome.errors, HasSubstr("nexar run: " + sentence(0, std::stoi(code))));
    }
}

TEST_F(RunAbort, exit_names_the_aborting_rank_even_if_the_others_succeed) {
    const Outcome outcome = abort("3", {"1", "77"});
    EXPECT_EQ(outcome.exit_code, 77) << outcome.errors;
    EXPECT_THAT(outcome.errors, Not(HasSubstr("had exited with code 0 before")));
    EXPECT_THAT(outcome.errors, HasSubstr("nexar run: " + sentence(1, 77)));
}

TEST_F(RunAbort, simultaneous_aborts_exit_with_the_code_of_one_of_them) {
    const Outcome outcome = abort("3", {"all", "5"});
    EXPECT_EQ(outcome.exit_code, 5) << outcome.errors;
    EXPECT_THAT(outcome.errors, AnyOf(HasSubstr("nexar run: " + sentence(0, 5)),
                                      HasSubstr("nexar run: " + sentence(1, 5)),
                                      HasSubstr("nexar run: " + sentence(2, 5))));
}

TEST_F(RunAbort, exit_does_not_wait_long_for_a_stopped_rank) {
    const auto begun = std::chrono::steady_clock::now();
    const Outcome outcome = abort("2", {"1", "4", "stopped"});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr("nexar run: " + sentence(1, 4)));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
}

TEST_F(RunAbort, error_can_be_caught_on_every_rank) {
    const Outcome outcome = abort("3", {"2", "3"}, "error");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, "");
    const auto lines = sorted_lines(outcome.output);
    EXPECT_THAT(lines, SizeIs(3));
    // Some ranks may still be in the barrier.
    EXPECT_THAT(lines, Each(HasSubstr("aborted: " + sentence(2, 3))));
    EXPECT_THAT(outcome.output, HasSubstr("[2] met and returned"));
}

TEST_F(RunAbort, abort_ends_a_join_that_has_not_returned) {
    const Outcome outcome = abort("5", {"all", "3", "early"}, "error");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
    const auto lines = sorted_lines(outcome.output);
    EXPECT_THAT(lines, SizeIs(5));
    EXPECT_THAT(lines, Each(HasSubstr("aborted the program with code 3: the input file")));
}

TEST_F(RunAbort, uncaught_error_names_the_aborting_rank) {
    const Outcome outcome = abort("3", {"2", "3", "uncaught"}, "error");
    EXPECT_EQ(outcome.exit_code, 3) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr("nexar run: " + sentence(2, 3)));
}

}  // namespace
}  // namespace nexar
