#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "link/quic/udp_socket.hpp"
#include "support/child_process.hpp"
#include "support/link_driver.hpp"
#include "unit/base/log_capture.hpp"

namespace nexar::testing {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

std::size_t kernel_limit(const char* name) {
    std::ifstream file(fmt::format("/proc/sys/net/core/{}", name));
    std::size_t bytes = 0;
    file >> bytes;
    return bytes;
}

// The kernel grants root any buffer size, so an unprivileged process requests it.
TEST(QuicBuffers, the_log_says_once_which_setting_to_raise) {
    const std::size_t most = kernel_limit("rmem_max");
    ASSERT_GT(most, 0U);
    ChildProcess child([&](Channel& parent) {
        if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(3);
        LogCapture log;
        const auto socket =
            quic::UdpSocket::open(Address::parse("127.0.0.1:0").value(),
                                  {.receive_buffer = 2 * most, .send_buffer = 4096});
        if (!socket) ::_exit(4);
        parent.say(fmt::format("{} lines", log.lines().size()));
        for (const auto& line : log.lines()) parent.say(line.text);
    });
    const auto count = child.channel().hear(patience(std::chrono::seconds(20)));
    ASSERT_TRUE(count.has_value());
    EXPECT_EQ(*count, "1 lines");
    const auto line = child.channel().hear(patience(std::chrono::seconds(20)));
    ASSERT_TRUE(line.has_value());
    EXPECT_THAT(
        *line, HasSubstr(fmt::format("of {} KiB instead of {} KiB", most / 1024, 2 * most / 1024)));
    EXPECT_THAT(*line, HasSubstr("packets will be lost"));
    EXPECT_THAT(*line, HasSubstr(fmt::format("sysctl -w net.core.rmem_max={}", 2 * most)));
    EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace nexar::testing
