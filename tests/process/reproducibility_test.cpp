// The setting `reproducibility` guarantees identical bits; tested with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "process/program.hpp"
#include "process/run_fixture.hpp"

namespace nexar {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Reproducibility : public RunFixture {
protected:
    Outcome sums(const std::vector<std::string>& settings) const {
        std::vector<std::string> arguments{"run", "-n", "5"};
        for (const std::string& setting : settings) arguments.push_back("--nexar-" + setting);
        arguments.insert(arguments.end(), {"--", NEXAR_SUMMING_RANK});
        return run_program(NEXAR_COMMAND, arguments, environment());
    }

    /// The distinct outputs of the five ranks of a run, without the rank prefix.
    std::set<std::string> bits(const std::vector<std::string>& settings) const {
        const Outcome outcome = sums(settings);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        const auto lines = sorted_lines(outcome.output);
        EXPECT_THAT(lines, SizeIs(5)) << outcome.output;
        std::set<std::string> all;
        for (const std::string& line : lines) all.insert(line.substr(line.find(' ') + 1));
        return all;
    }
};

TEST_F(Reproducibility, runs_gives_the_same_bits_with_every_algorithm_and_segment_size) {
    std::set<std::string> all;
    for (const std::string algorithm :
         {"recursive_doubling", "halving_doubling", "reduce_scatter_all_gather", "tree"}) {
        SCOPED_TRACE(algorithm);
        const std::string forced = "collective-algorithm=all_reduce=" + algorithm;
        all.merge(bits({"reproducibility=runs", forced}));
        all.merge(bits({"reproducibility=runs", forced, "collective-segment=4KiB"}));
    }
    all.merge(bits({"reproducibility=runs"}));
    EXPECT_THAT(all, SizeIs(1));
}

TEST_F(Reproducibility, ranks_gives_the_same_bits_only_within_a_run) {
    const auto ring = bits({"reproducibility=ranks", "collective-algorithm=all_reduce=ring"});
    const auto tree = bits({"reproducibility=ranks", "collective-algorithm=all_reduce=tree"});
    EXPECT_THAT(ring, SizeIs(1));
    EXPECT_THAT(tree, SizeIs(1));
    EXPECT_NE(ring, tree)
        << "the order of additions makes no difference here, so the test above proves nothing";
}

TEST_F(Reproducibility, runs_refuses_an_algorithm_that_cannot_guarantee_it) {
    const Outcome outcome = sums({"reproducibility=runs", "collective-algorithm=all_reduce=ring"});
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors, HasSubstr("recursive_doubling"));
}

}  // namespace
}  // namespace nexar
