#include "run/ended.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace nexar::run {
namespace {

TEST(EndedTest, describes_code_or_signal_and_has_the_exit_code_of_a_shell) {
    const Ended good = Ended::from_status(W_EXITCODE(0, 0));
    EXPECT_FALSE(good.failed());
    EXPECT_EQ(good.exit_code(), 0);
    const Ended code = Ended::from_status(W_EXITCODE(3, 0));
    EXPECT_TRUE(code.failed());
    EXPECT_EQ(code.exit_code(), 3);
    EXPECT_EQ(to_text(code), "exited with code 3");
    const Ended crash = Ended::from_status(W_EXITCODE(0, SIGSEGV));
    EXPECT_EQ(crash.exit_code(), 139);
    EXPECT_EQ(to_text(crash), "was killed by signal 11 (SIGSEGV)");
    const Ended core = Ended::from_status(W_EXITCODE(0, SIGABRT) | WCOREFLAG);
    EXPECT_EQ(to_text(core), "was killed by signal 6 (SIGABRT), core dumped");
    EXPECT_EQ(signal_name(SIGRTMIN + 2), "SIGRTMIN+2");
}

}  // namespace
}  // namespace nexar::run
