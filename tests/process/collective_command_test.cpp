// Runs the real nexar command to explain and simulate collectives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome nexar(std::vector<std::string> arguments) {
    return run_program(NEXAR_COMMAND, std::move(arguments), {});
}

std::string collective_refusal(std::vector<std::string> arguments) {
    const Outcome outcome = nexar(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.output, "");
    return outcome.errors;
}

TEST(ExplainCommand, prints_the_algorithm_with_its_reason_and_rounds) {
    const Outcome outcome = nexar({"explain", "all_reduce", "--bytes", "64", "--world", "4"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, "");
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("all_reduce of 64B over 4 ranks: recursive_doubling, "),
                      HasSubstr("the fastest of 6"), HasSubstr("sends at most 128B"),
                      HasSubstr("round 1      64B each:  0 -> 1  1 -> 0  2 -> 3  3 -> 2\n"),
                      HasSubstr("round 2      64B each:  0 -> 2  1 -> 3  2 -> 0  3 -> 1\n")));
}

TEST(ExplainCommand, lists_the_algorithms_that_meet_the_requirements) {
    const std::vector<std::string> base{"explain", "all_reduce", "--bytes", "64MiB",
                                        "--world", "8",          "--all"};
    EXPECT_THAT(nexar(base).output,
                AllOf(ContainsRegex("\nring +messages +[0-9.]+ ms +- +-"),
                      HasSubstr("  round 1-14   8MiB each:  0 -> 1  1 -> 2  2 -> 3")));
    auto strict = base;
    strict.emplace_back("--ordered");
    EXPECT_THAT(nexar(strict).output,
                AllOf(Not(HasSubstr("\nring ")), HasSubstr("\nhalving_doubling ")));
    auto forced = base;
    forced.insert(forced.end(), {"--algorithm", "tree", "--segment", "1MiB"});
    EXPECT_THAT(nexar(forced).output,
                AllOf(HasSubstr("tree in segments of 1MiB"), HasSubstr("because it is forced")));
}

TEST(ExplainCommand, names_the_path_of_a_payload_in_shared_memory) {
    const auto path = [](const char* operation, const char* bytes, const char* buffers) {
        return nexar({"explain", operation, "--bytes", bytes, "--world", "4", "--memory", "8MiB",
                      "--buffers", buffers})
            .output;
    };
    EXPECT_THAT(path("all_reduce", "1KiB", "shared"),
                HasSubstr("copies its payload into its slot"));
    EXPECT_THAT(path("all_reduce", "1MiB", "private"), HasSubstr("into its segment in "));
    for (const char* operation : {"all_reduce", "reduce", "broadcast", "all_gather", "gather",
                                  "scatter", "reduce_scatter"}) {
        EXPECT_THAT(path(operation, "1MiB", "shared"),
                    HasSubstr("in the shared buffer of its rank\n"))
            << operation;
    }
    EXPECT_THAT(path("all_to_all", "1MiB", "shared"),
                HasSubstr("; in-place calls copy it first\n"));
    EXPECT_THAT(collective_refusal({"explain", "all_reduce", "--buffers", "mine"}),
                HasSubstr("private, shared"));
}

TEST(ExplainCommand, chooses_according_to_the_settings) {
    const std::vector<std::string> base{"explain", "broadcast", "--bytes", "1MiB", "--world", "8"};
    const auto with = [&](const std::string& setting) {
        auto arguments = base;
        arguments.push_back(setting);
        return nexar(arguments).output;
    };
    // With unlimited bandwidth only latency counts.
    EXPECT_THAT(with("--nexar-fabric-bandwidth=1000TB"),
                Not(HasSubstr("8 ranks: scatter_all_gather")));
    EXPECT_THAT(with("--nexar-fabric-bandwidth=1MB"),
                Not(AnyOf(HasSubstr("8 ranks: flat"), HasSubstr("8 ranks: binomial"))));
    EXPECT_THAT(with("--nexar-collective-algorithm=broadcast=flat"),
                AllOf(HasSubstr("8 ranks: flat"), HasSubstr("because it is forced")));
    EXPECT_THAT(with("--nexar-collective-algorithm=all_reduce=ring"),
                Not(HasSubstr("because it is forced")));
    EXPECT_THAT(with("--nexar-collective-algorithm=broadcast=flat:1MiB"),
                HasSubstr("because it is forced"));
    EXPECT_THAT(with("--nexar-collective-algorithm=broadcast=flat:1MB"),
                Not(HasSubstr("because it is forced")));
    EXPECT_THAT(nexar({"explain", "broadcast", "--nexar-fabric-latency=fast"}).errors,
                HasSubstr("fabric_latency"));
}

TEST(ExplainCommand, chooses_according_to_the_links_between_the_ranks) {
    const auto on = [](const std::string& hosts) {
        return nexar({"explain", "broadcast", "--bytes", "1MiB", "--world", "8", "--hosts", hosts,
                      "--nexar-host-bandwidth=1000TB", "--nexar-host-both-bandwidth=1000TB"})
            .output;
    };
    EXPECT_THAT(on("8"), HasSubstr("8 ranks: chain"));
    EXPECT_EQ(on("0"), on("8"));
    EXPECT_THAT(on("2"), HasSubstr("8 ranks on 2 hosts: shares"));
    EXPECT_EQ(on("2x4"), on("2"));
    EXPECT_EQ(on("4,4"), on("2"));
    EXPECT_THAT(on("5,3"), HasSubstr("8 ranks on 2 hosts: "));
    EXPECT_THAT(on("1"), Not(HasSubstr("8 ranks: chain")));
    const Outcome many = nexar({"explain", "broadcast", "--world", "8", "--hosts", "9"});
    EXPECT_EQ(many.exit_code, 1);
    EXPECT_THAT(many.errors, HasSubstr("allowed: 1 to 8"));
    for (const std::string wrong : {"2x", "x4", "2x4x2", "5,", "5,0", "3,-1", "two", "0x4", ""})
        EXPECT_THAT(collective_refusal({"explain", "barrier", "--hosts", wrong}),
                    HasSubstr("is not a valid list of hosts"))
            << wrong;
    EXPECT_THAT(collective_refusal({"explain", "barrier", "--hosts", "2x4", "--world", "9"}),
                HasSubstr("\"9\" is not a valid world size for these hosts; allowed: 8"));
}

TEST(ExplainCommand, explains_a_communicator_that_spans_hosts) {
    const auto on = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"explain", "all_reduce", "--all"});
        return nexar(std::move(arguments)).output;
    };
    EXPECT_THAT(on({"--hosts", "2x4", "--bytes", "1MiB"}),
                AllOf(HasSubstr("over 8 ranks on 2 hosts: shares, "),
                      HasSubstr("128KiB each:  0 -> 4  1 -> 5  2 -> 6  3 -> 7"),
                      ContainsRegex("\nleaders +messages +[0-9.]+ ms +- +yes +yes")));
    // Host by host, nine ranks are not folded along the canonical tree.
    EXPECT_THAT(on({"--hosts", "3x3"}),
                ContainsRegex("\nleaders +messages +[0-9.]+ [mu]s +- +yes +-"));
    EXPECT_THAT(on({"--hosts", "3x3", "--reproducibility", "runs"}), Not(HasSubstr("\nleaders")));
    EXPECT_THAT(on({"--hosts", "8", "--bytes", "1MiB"}), Not(HasSubstr("\nleaders")));
}

TEST(SimCommand, simulates_both_kinds_of_links) {
    const auto seconds = [](const std::string& hosts) {
        const Outcome outcome = nexar({"sim", "barrier", "--hosts", hosts, "--latency", "1s"});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        return outcome.output;
    };
    // One round between two hosts; three between eight.
    EXPECT_THAT(seconds("2x4"), HasSubstr("\ntime              1.25 s\n"));
    EXPECT_THAT(seconds("8"), HasSubstr("\ntime              3.75 s\n"));
}

TEST(SimCommand, simulates_four_thousand_ranks) {
    const Outcome outcome = nexar({"sim", "all_reduce", "--world", "4096", "--bytes", "64MiB",
                                   "--latency", "10us", "--bandwidth", "100Gbps"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("world             4096 ranks\n"),
                                      ContainsRegex("\ntime +[0-9.]+ ms\n"),
                                      ContainsRegex("\nbytes per rank +at most [0-9]+[KM]iB"),
                                      ContainsRegex("\nconnections +at most [0-9]+ per rank\n")));
}

TEST(SimCommand, predicts_the_time_of_a_single_message) {
    // One message of 1 MB at 1 MB/s takes one second and very little more.
    const Outcome outcome =
        nexar({"sim", "broadcast", "--world", "2", "--bytes", "1MB", "--latency", "1ns",
               "--bandwidth", "1MB/s", "--algorithm", "flat"});
    EXPECT_THAT(outcome.output, HasSubstr("time              1.00 s\n")) << outcome.errors;
}

TEST(CollectiveCommand, reports_what_is_wrong_with_its_arguments) {
    EXPECT_THAT(collective_refusal({"explain", "allreduce"}),
                HasSubstr("\"allreduce\" is not a valid operation; "
                          "allowed: all_reduce, reduce"));
    EXPECT_THAT(collective_refusal({"sim", "barrier", "--bandwidth", "fast"}),
                HasSubstr("\"fast\""));
    EXPECT_THAT(collective_refusal({"sim", "barrier", "--world", "0"}), HasSubstr("1 to 65536"));
    EXPECT_THAT(collective_refusal({"sim", "reduce", "--root", "4"}), HasSubstr("0 to 3"));
    EXPECT_THAT(collective_refusal({"sim", "reduce", "--bytes", "5"}),
                HasSubstr("a divisor of --bytes"));
    EXPECT_THAT(collective_refusal({"sim", "reduce", "--reproducibility", "x"}),
                HasSubstr("ranks, runs"));
    EXPECT_THAT(collective_refusal({"sim", "reduce", "--nexar-reproducibility=fast"}),
                HasSubstr("ranks, runs"));
    EXPECT_THAT(collective_refusal({"explain", "all_reduce", "--algorithm", "x"}),
                HasSubstr("choose one of: "));
    EXPECT_THAT(
        collective_refusal({"sim", "all_reduce", "--world", "16384", "--algorithm", "ring"}),
        HasSubstr("choose a smaller world"));
    EXPECT_EQ(nexar({"sim"}).exit_code, 2);
}

}  // namespace
}  // namespace nexar
