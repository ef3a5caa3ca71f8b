// One rank has a different profile and would choose other algorithms: every call fails on every
// rank, none hangs, and no result is wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster.hpp"
#include "collective_traffic.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using ::testing::HasSubstr;
using Op = schedule::Collective;
using schedule::Profile;

constexpr std::size_t kWorld = 5;

class OtherProfile : public ::testing::TestWithParam<std::pair<const char*, Profile>> {};

TEST_P(OtherProfile, on_one_rank_fails_every_call_on_all_ranks) {
    for (std::size_t odd = 0; odd < kWorld; ++odd) {
        SCOPED_TRACE(odd);
        SimCluster cluster(test_seed(1) + odd, kWorld);
        CollectiveTraffic traffic(cluster, odd);
        traffic.set_profile({.forced = "all_reduce=tree"});
        cluster.context(odd, 0).collectives.set_profile(GetParam().second);
        ASSERT_TRUE(cluster.connect());
        for (const std::size_t count : {std::size_t{10}, std::size_t{30'000}}) {
            traffic.add({.what = Op::all_reduce, .count = count, .floats = true});
        }
        traffic.start_all();
        ASSERT_TRUE(traffic.run(std::chrono::seconds(60)));
        for (std::size_t call = 0; call < traffic.calls(); ++call) {
            for (std::size_t rank = 0; rank < kWorld; ++rank) {
                const auto& error = traffic.error(call, rank);
                ASSERT_TRUE(error) << "call " << call << " rank " << rank;
                EXPECT_EQ(error->code(), Errc::invalid_argument) << error->what();
                EXPECT_THAT(error->what(),
                            HasSubstr("settings of collectives must be equal on all ranks"));
                EXPECT_THAT(error->what(), HasSubstr("rank " + std::to_string(odd)));
            }
        }
        traffic.expect_untouched_and_forget();
        cluster.close();
    }
}

INSTANTIATE_TEST_SUITE_P(
    Collectives, OtherProfile,
    ::testing::Values(
        std::pair("algorithm", Profile{.forced = "all_reduce=ring"}),
        std::pair("threshold", Profile{.forced = "all_reduce=tree:1KiB,all_reduce=tree"}),
        std::pair("links", Profile{.links = schedule::Links(std::array{0U, 0U, 1U, 1U, 1U}),
                                   .forced = "all_reduce=tree"}),
        std::pair("rates", Profile{.host_rates = {.latency = 1e-6}, .forced = "all_reduce=tree"}),
        std::pair("eager_limit", Profile{.forced = "all_reduce=tree", .eager_bytes = 100})),
    [](const auto& one) { return std::string(one.param.first); });

}  // namespace
}  // namespace nexar::testing
