// Runs the self-checking examples with several numbers of ranks, as a user would.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "process/program.hpp"
#include "process/run_fixture.hpp"

namespace nexar {
namespace {

class Examples : public RunFixture {
protected:
    /// What the ranks print.
    std::string output_of(const std::string& program, int ranks) const {
        const Outcome outcome = run_program(
            NEXAR_COMMAND, {"run", "-n", std::to_string(ranks), "--", program}, environment());
        EXPECT_EQ(outcome.exit_code, 0) << ranks << " ranks";
        EXPECT_EQ(outcome.errors, "") << ranks << " ranks";
        return outcome.output;
    }
};

TEST_F(Examples, jacobi_agrees_with_a_serial_run_on_every_grid) {
    const std::string rest = " ranks agree with a serial run after 477 steps\n";
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_JACOBI, 1), "[0] 1 x 1" + rest);
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_JACOBI, 2), "[0] 2 x 1" + rest);
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_JACOBI, 3), "[0] 3 x 1" + rest);
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_JACOBI, 4), "[0] 2 x 2" + rest);
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_JACOBI, 5), "[0] 5 x 1" + rest);
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_JACOBI, 6), "[0] 3 x 2" + rest);
}

TEST_F(Examples, sample_sort_sorts_the_keys_of_all_ranks) {
    const auto sorted = [](int ranks, int keys, int most) {
        return "[0] " + std::to_string(ranks) + " ranks sorted " + std::to_string(keys) +
               " keys; no rank has more than " + std::to_string(most) + "\n";
    };
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_SAMPLE_SORT, 1), sorted(1, 20014, 20014));
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_SAMPLE_SORT, 2), sorted(2, 50035, 25074));
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_SAMPLE_SORT, 3), sorted(3, 50035, 16691));
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_SAMPLE_SORT, 4), sorted(4, 60042, 15149));
    EXPECT_EQ(output_of(NEXAR_EXAMPLE_SAMPLE_SORT, 5), sorted(5, 80056, 16167));
}

TEST_F(Examples, sparse_shows_the_neighbours_and_routes_of_all_ranks) {
    const Outcome outcome = run_program(NEXAR_COMMAND,
                                        {"run", "-n", "8", "--nexar-topology=hypercube",
                                         "--nexar-link=quic", "--", NEXAR_EXAMPLE_SPARSE},
                                        environment());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto lines = sorted_lines(outcome.output);
    ASSERT_EQ(lines.size(), 9U) << outcome.output;
    for (std::size_t rank = 0; rank < 8; ++rank) {
        EXPECT_THAT(lines[rank],
                    testing::StartsWith("[0] " + std::to_string(rank) + ": neighbours "));
        EXPECT_THAT(lines[rank], testing::HasSubstr(" through "));
    }
    EXPECT_THAT(lines[8], testing::StartsWith("[0] 8 messages and an all-reduce are right; "));
}

TEST_F(Examples, demo_checks_its_data_and_shows_both_calls_of_a_mistake_on_every_rank) {
    for (const int ranks : {2, 4}) {
        const std::string output = output_of(NEXAR_EXAMPLE_DEMO, ranks);
        for (const char* row : {"[0] all_reduce    64 KiB ", "[0] broadcast     64 KiB ",
                                "[0] all_to_all    64 KiB ", "[0] all_reduce     8 MiB ",
                                "[0] broadcast      8 MiB ", "[0] all_to_all     8 MiB "}) {
            EXPECT_THAT(output, testing::HasSubstr(row)) << ranks << " ranks";
        }
        const std::string caller = "rank " + std::to_string(ranks - 1);
        for (int rank = 0; rank < ranks; ++rank) {
            const std::string start = "[" + std::to_string(rank) + "] rank " +
                                      std::to_string(rank) + " gets: collective #";
            const std::size_t begin = output.find(start);
            ASSERT_NE(begin, std::string::npos) << start << " is not in\n" << output;
            const std::string line = output.substr(begin, output.find('\n', begin) - begin);
            EXPECT_THAT(line, testing::HasSubstr(caller + " called broadcast i64 x 500, root 0"));
            EXPECT_THAT(line, testing::HasSubstr(" called all_reduce f32 x 1000 sum"));
        }
    }
}

}  // namespace
}  // namespace nexar
