// Runs the self-checking examples with several numbers of ranks, as a user would.

#include <gtest/gtest.h>

#include <string>

#include "process/program.hpp"
#include "process/run_fixture.hpp"

namespace nexar {
namespace {

class Examples : public RunFixture {
protected:
    /// The output of rank 0, the only rank that prints.
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

}  // namespace
}  // namespace nexar
