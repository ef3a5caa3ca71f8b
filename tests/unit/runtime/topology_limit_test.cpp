// Clusters that are too large for their topology.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nexar/nexar.hpp>
#include <optional>

namespace nexar {
namespace {

using ::testing::HasSubstr;

std::optional<Error> refusal_of(const SeedOptions& options) {
    try {
        const Seed seed(options);
    } catch (const Error& error) {
        return error;
    }
    return std::nullopt;
}

SeedOptions ring(int world, int max_world = 0) {
    return {.listen = "127.0.0.1:0",
            .world = world,
            .max_world = max_world,
            .settings = {{"topology", "k_regular:2"}}};
}

TEST(TopologyLimit, a_seed_refuses_a_ring_that_packets_cannot_cross) {
    EXPECT_FALSE(refusal_of(ring(33)));
    for (const SeedOptions& options : {ring(34), ring(2, 34)}) {
        const auto error = refusal_of(options);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::invalid_argument);
        EXPECT_THAT(error->what(), HasSubstr("topology=k_regular:2 connects at most 33 members"));
        EXPECT_THAT(error->what(), HasSubstr("use topology=k_regular:4"));
    }
}

}  // namespace
}  // namespace nexar
