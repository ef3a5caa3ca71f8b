// nexar sim chaos, as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"

namespace nexar {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Outcome sim(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "sim");
    return run_program(NEXAR_COMMAND, std::move(arguments), {});
}

std::string line_with(const std::string& text, const std::string& word) {
    const std::size_t at = text.find(word);
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(ChaosCommand, prints_faults_and_outcome_and_the_same_trace_again) {
    const Outcome first = sim({"chaos", "--seed", "4", "--nodes", "2"});
    EXPECT_EQ(first.exit_code, 0) << first.output << first.errors;
    EXPECT_THAT(first.output, AllOf(HasSubstr(" s: "), HasSubstr("nodes             2\n"),
                                    HasSubstr("outcome           no rule was broken\n")));
    const Outcome second = sim({"chaos", "--seed", "4", "--nodes", "2"});
    const std::string trace = line_with(first.output, "trace ");
    EXPECT_FALSE(trace.empty());
    EXPECT_EQ(line_with(second.output, "trace "), trace);
}

TEST(ChaosCommand, leaves_out_faults) {
    const Outcome one = sim({"chaos", "--seed", "4", "--nodes", "2", "--without", "0,2"});
    EXPECT_EQ(one.exit_code, 0) << one.output << one.errors;
    EXPECT_EQ(line_with(one.output, " 0 ").find("(left out)") != std::string::npos, true);
    EXPECT_EQ(line_with(one.output, " 1 ").find("(left out)"), std::string::npos);
}

TEST(ChaosCommand, refuses_wrong_arguments) {
    EXPECT_THAT(sim({"chaos", "--nodes", "17"}).errors,
                HasSubstr("--nodes: \"17\" is not a whole number from 2 to 16"));
    EXPECT_THAT(sim({"chaos", "--seed", "x"}).errors, HasSubstr("--seed: \"x\" is not a whole"));
    const Outcome beyond = sim({"chaos", "--seed", "4", "--without", "99"});
    EXPECT_EQ(beyond.exit_code, 2);
    EXPECT_THAT(beyond.errors, HasSubstr("there is no fault 99; seed 4 has the faults 0 to "));
}

TEST(ChaosCommand, does_not_replace_the_simulation_of_collectives) {
    EXPECT_EQ(sim({"barrier", "--world", "4"}).exit_code, 0);
    const Outcome nothing = sim({});
    EXPECT_EQ(nothing.exit_code, 2);
    EXPECT_THAT(nothing.errors, HasSubstr("operation"));
    EXPECT_THAT(sim({"--help"}).output, HasSubstr("chaos"));
}

}  // namespace
}  // namespace nexar
