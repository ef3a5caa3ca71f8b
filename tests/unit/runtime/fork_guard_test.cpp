#include "runtime/fork_guard.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nexar/error.hpp>
#include <string_view>

namespace nexar::runtime {
namespace {

// The exit status of a child that runs `body`; -1 if a signal killed it.
template <class Body>
int in_child(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refuses(const ForkGuard& guard) {
    try {
        guard.check("wait");
    } catch (const Error& error) {
        return error.code() == Errc::forked &&
               error.cause().find("cannot wait in a forked child") != std::string_view::npos;
    }
    return false;
}

TEST(fork_guard, refuses_calls_in_children_and_grandchildren_but_not_in_its_own_process) {
    const ForkGuard guard;
    EXPECT_FALSE(guard.forked());
    const int exit_code = in_child([&] {
        if (!refuses(guard)) return 1;
        return in_child([&] { return refuses(guard) ? 42 : 2; });
    });
    EXPECT_EQ(exit_code, 42);
    guard.check("wait");
}

TEST(fork_guard, created_in_a_child_belongs_to_the_child) {
    const int exit_code = in_child([] {
        const ForkGuard guard;
        return guard.forked() ? 1 : 42;
    });
    EXPECT_EQ(exit_code, 42);
}

}  // namespace
}  // namespace nexar::runtime
