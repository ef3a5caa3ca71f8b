#include "link/quic/link_settings.hpp"

#include <gtest/gtest.h>

#include "base/settings.hpp"

namespace nexar::quic {
namespace {

TEST(LinkSettings, defaults_are_those_of_the_options) {
    const Config config = Config::resolve(kSettings, {}).value();
    const LinkOptions options = link_options(config);
    EXPECT_EQ(options.protection, LinkOptions{}.protection);
    EXPECT_EQ(options.idle_timeout, LinkOptions{}.idle_timeout);
    EXPECT_EQ(options.keep_alive, LinkOptions{}.keep_alive);
    EXPECT_EQ(udp_options(config).receive_buffer, UdpOptions{}.receive_buffer);
}

TEST(LinkSettings, each_reaches_its_option) {
    const Config config = Config::resolve(kSettings, {.code = {{"protection", "none"},
                                                               {"link_idle_timeout", "6s"},
                                                               {"udp_buffer", "256KiB"}}})
                              .value();
    EXPECT_EQ(link_options(config).protection, Protection::none);
    EXPECT_EQ(link_options(config).idle_timeout, std::chrono::seconds(6));
    EXPECT_EQ(link_options(config).keep_alive, std::chrono::milliseconds(600));
    EXPECT_EQ(udp_options(config).receive_buffer, 256U * 1024);
}

}  // namespace
}  // namespace nexar::quic
