#include "run/binding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nexar::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Binding, divides_the_processors_between_the_ranks) {
    const std::vector<std::size_t> processors{0, 1, 4, 5, 6};
    EXPECT_THAT(share_of(processors, 0, 2), ElementsAre(0, 1));
    EXPECT_THAT(share_of(processors, 1, 2), ElementsAre(4, 5, 6));
    EXPECT_THAT(share_of(processors, 3, 5), ElementsAre(5));
    EXPECT_THAT(share_of(processors, 0, 1), ElementsAre(0, 1, 4, 5, 6));
}

TEST(Binding, leaves_ranks_alone_that_outnumber_the_processors) {
    EXPECT_THAT(share_of({0, 1}, 0, 3), IsEmpty());
    EXPECT_THAT(share_of({}, 0, 1), IsEmpty());
}

TEST(Binding, finds_the_processors_of_this_process) {
    EXPECT_FALSE(own_processors().empty());
}

}  // namespace
}  // namespace nexar::run
