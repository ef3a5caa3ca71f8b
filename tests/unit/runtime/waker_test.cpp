#include "runtime/waker.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <utility>

namespace nexar::runtime {
namespace {

bool readable(const Waker& waker) {
    pollfd entry{.fd = waker.descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
}

TEST(waker, is_readable_from_the_first_signal_to_the_drain) {
    const Waker waker = Waker::make().value();
    EXPECT_FALSE(readable(waker));
    waker.drain();
    waker.signal();
    waker.signal();
    EXPECT_TRUE(readable(waker));
    waker.drain();
    EXPECT_FALSE(readable(waker));
}

TEST(waker, is_closed_on_exec) {
    const Waker waker = Waker::make().value();
    EXPECT_NE(::fcntl(waker.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(descriptor, is_closed_once_by_its_last_owner) {
    Descriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int number = first.number();
    {
        const Descriptor second(std::move(first));
        EXPECT_EQ(second.number(), number);
        EXPECT_NE(::fcntl(number, F_GETFD), -1);
    }
    EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace nexar::runtime
