#include "compute/targets.hpp"

#include <cstdlib>

#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

TEST(KernelTargets, the_best_one_is_used_until_a_test_chooses_another) {
    const std::vector<std::string_view> targets = kernel_targets();
    ASSERT_FALSE(targets.empty());
    EXPECT_EQ(kernel_target(), targets.front());
    // Set by scripts/cross_test.sh: a run for one target must not quietly test another.
    if (const char* asked = std::getenv("NEXAR_TEST_TARGET")) {
        EXPECT_EQ(kernel_target(), asked);
    }
    for (const std::string_view target : targets) {
        use_kernel_target(target);
        EXPECT_EQ(kernel_target(), target);
        EXPECT_EQ(kernel_targets(), std::vector{target});
    }
    use_kernel_target("");
    EXPECT_EQ(kernel_targets(), targets);
}

// If several were compiled, choosing one changes the code that runs.
TEST(KernelTargets, each_has_kernels_of_its_own) {
    std::vector<FoldKernel> kernels;
    testing::on_every_target([&] { kernels.push_back(integer_fold(DType::i32, ReduceOp::sum)); });
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) EXPECT_NE(kernels[i], kernels[j]);
    }
}

TEST(KernelTargetsDeathTest, an_unknown_name_is_a_bug) {
    EXPECT_DEATH(use_kernel_target("ABACUS"), "not compiled for this target");
}

}  // namespace
}  // namespace nexar::compute
