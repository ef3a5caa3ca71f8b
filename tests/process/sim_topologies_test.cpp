// nexar sim topologies, as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome topologies(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sim", "topologies"});
    return run_program(NEXAR_COMMAND, std::move(arguments), {});
}

std::string topology_refusal(std::vector<std::string> arguments, int exit_code) {
    const Outcome outcome = topologies(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, exit_code);
    EXPECT_EQ(outcome.output, "");
    return outcome.errors;
}

TEST(SimTopologies, prints_connections_times_and_relay_loads) {
    const Outcome outcome =
        topologies({"--world", "16,40", "--topology", "full,k_regular:4,hypercube"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, "");
    EXPECT_THAT(
        outcome.output,
        AllOf(HasSubstr("16 members\n"), HasSubstr("\n40 members\n"),
              ContainsRegex("\nfull +120 +15 +1 +1.00 +0.0\n"),
              ContainsRegex("\nfull +780 +39 +1 +1.00 +0.0\n"),
              ContainsRegex("\nk_regular:4 +[0-9]+ +4 +[0-9] +[0-9.]+ +[0-9.]+\n"),
              // A complete hypercube: n/2 log2(n) connections; the mean of (n/2 log2(n)) / (n-1).
              ContainsRegex("\nhypercube +32 +4 +4 +2.13 +[0-9.]+\n"),
              ContainsRegex("\npredicted time +size +full +k_regular:4 +hypercube\n"),
              ContainsRegex("\nall_to_all +1MiB +[0-9.]+ [mu]s +[0-9.]+ [mu]s +[0-9.]+ [mu]s\n"),
              ContainsRegex("\nbarrier +- +dissemination 0 +[a-z_]+ [0-9.]+ +[a-z_]+ [0-9.]+\n"),
              HasSubstr("relay load: bytes that the busiest relay forwards"), Not(HasSubstr("?"))));
}

TEST(SimTopologies, prints_the_same_as_json) {
    const Outcome outcome = topologies({"--world", "40", "--topology", "k_regular:6", "--operation",
                                        "broadcast,barrier", "--bytes", "64KiB", "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto all = nlohmann::json::parse(outcome.output);
    ASSERT_EQ(all.size(), 1U);
    const auto& one = all[0];
    EXPECT_EQ(one["topology"], "k_regular:6");
    EXPECT_EQ(one["members"], 40);
    EXPECT_LE(one["connections"], 120);
    EXPECT_LE(one["most_connections"], 6);
    EXPECT_GT(one["mean_hops"], 1.0);
    EXPECT_GT(one["all_to_all_relay_load"], 0.0);
    ASSERT_EQ(one["collectives"].size(), 2U);
    EXPECT_EQ(one["collectives"][0]["operation"], "broadcast");
    EXPECT_EQ(one["collectives"][0]["bytes"], 65536);
    EXPECT_GT(one["collectives"][0]["seconds"], 0.0);
    EXPECT_EQ(one["collectives"][1]["operation"], "barrier");
}

TEST(SimTopologies, depend_on_the_costs_that_are_given) {
    const auto seconds = [](std::vector<std::string> costs) {
        costs.insert(costs.begin(), {"--world", "64", "--topology", "k_regular:4", "--operation",
                                     "barrier", "--json"});
        const auto all = nlohmann::json::parse(topologies(std::move(costs)).output);
        return all[0]["collectives"][0]["seconds"].get<double>();
    };
    EXPECT_NEAR(seconds({"--latency", "1s"}) / seconds({"--latency", "1ms"}), 1000, 1);
    EXPECT_GT(seconds({"--nexar-fabric-latency=1ms"}), seconds({"--nexar-fabric-latency=1us"}));
}

TEST(SimTopologies, compares_four_thousand_members) {
    const Outcome outcome = topologies({"--world", "4096", "--topology", "full,k_regular:8"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(ContainsRegex("\nfull +8386560 +4095 +1 +1.00 +0.0\n"),
                                      ContainsRegex("\nk_regular:8 +163[0-9][0-9] +8 ")));
}

TEST(SimTopologies, warns_of_ways_that_packets_cannot_take) {
    const auto ring = [](const std::string& members) {
        return topologies(
                   {"--world", members, "--topology", "k_regular:2", "--operation", "barrier"})
            .output;
    };
    EXPECT_THAT(ring("34"), HasSubstr("\nk_regular:2 with 34 members: some ways have 17 hops, but "
                                      "relays drop packets after 16\n"));
    EXPECT_THAT(ring("33"), Not(HasSubstr("some ways")));
}

TEST(SimTopologies, reports_what_is_wrong_with_its_arguments) {
    for (const std::string world : {"1", "16385", "x", "64,1"}) {
        EXPECT_THAT(topology_refusal({"--world", world}, 2),
                    HasSubstr("is not a whole number from 2 to 16384"));
    }
    EXPECT_THAT(topology_refusal({"--topology", "k_regular:3"}, 1),
                HasSubstr("\"k_regular:3\" is not a topology; write full, hypercube, or"));
    EXPECT_THAT(topology_refusal({"--operation", "allreduce"}, 1),
                HasSubstr("\"allreduce\" is not a valid operation; allowed: all_reduce, reduce"));
    EXPECT_THAT(topology_refusal({"--bytes", "5"}, 1), HasSubstr("a multiple of 4 bytes"));
    EXPECT_THAT(topology_refusal({"--bytes", "0"}, 1), HasSubstr("a multiple of 4 bytes"));
    EXPECT_THAT(topology_refusal({"--bandwidth", "fast"}, 1), HasSubstr("\"fast\""));
    EXPECT_THAT(topologies({"--help"}).output, HasSubstr("k_regular:6,k_regular:12,hypercube"));
}

}  // namespace
}  // namespace nexar
