#include "link/carriers.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/pool_profile.hpp"
#include "base/settings.hpp"
#include "link/quic/open_carrier.hpp"
#include "link/shm/open_carrier.hpp"

namespace nexar::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(link_settings, the_defaults_equal_those_of_the_quic_options) {
    const LinkSettings settings = link_settings(Config::resolve(kSettings, {}).value());
    const quic::EndpointOptions options = quic::endpoint_options({.settings = settings});
    EXPECT_EQ(options.link.protection, quic::LinkOptions{}.protection);
    EXPECT_EQ(options.link.idle_timeout, quic::LinkOptions{}.idle_timeout);
    EXPECT_EQ(options.link.keep_alive, quic::LinkOptions{}.keep_alive);
    EXPECT_EQ(options.link.linger, quic::LinkOptions{}.linger);
    EXPECT_EQ(quic::udp_options(settings).receive_buffer, quic::UdpOptions{}.receive_buffer);
    EXPECT_EQ(LinkSettings{}.idle_timeout, settings.idle_timeout);
    EXPECT_EQ(LinkSettings{}.keep_alive, settings.keep_alive);
    EXPECT_EQ(LinkSettings{}.receive_buffer, settings.receive_buffer);
}

TEST(link_settings, the_linger_time_reaches_shared_memory_links) {
    const LinkSettings settings = link_settings(Config::resolve(kSettings, {}).value());
    EXPECT_EQ(shm::link_options(settings).linger, shm::LinkOptions{}.linger);
    EXPECT_EQ(shm::link_options({.linger = seconds(7)}).linger, seconds(7));
}

TEST(link_settings, each_setting_reaches_its_option) {
    const Config config = Config::resolve(kSettings, {.code = {{"protection", "none"},
                                                               {"link_idle_timeout", "6s"},
                                                               {"udp_buffer", "256KiB"}}})
                              .value();
    const LinkSettings settings = link_settings(config);
    const quic::EndpointOptions options = quic::endpoint_options({.settings = settings});
    EXPECT_EQ(options.link.protection, port::Protection::none);
    EXPECT_EQ(options.link.idle_timeout, seconds(6));
    EXPECT_EQ(options.link.keep_alive, milliseconds(600));
    EXPECT_EQ(quic::udp_options(settings).receive_buffer, 256U * 1024);
}

TEST(carriers, each_kind_has_its_own_name_and_opens) {
    std::set<std::string_view> names;
    BufferPool pool{PoolProfile::inference()};
    for (const CarrierKind& kind : carrier_kinds()) {
        EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
        const auto carrier = kind.open(pool, {.local = Address::parse("127.0.0.1:0").value()});
        ASSERT_TRUE(carrier.has_value()) << kind.name;
        EXPECT_FALSE((*carrier)->poll_event().has_value());
        EXPECT_FALSE((*carrier)->on_ready(TimePoint(seconds(1))));
    }
    EXPECT_TRUE(names.contains("quic"));
    EXPECT_TRUE(names.contains("shm"));
}

TEST(carriers, the_first_kind_listens_at_the_given_address) {
    BufferPool pool{PoolProfile::inference()};
    const auto carrier =
        open_carrier(pool, {.local = Address::parse("127.0.0.1:0").value()}).value();
    EXPECT_TRUE(carrier->local().is_loopback());
    EXPECT_NE(carrier->local().port(), 0);
}

}  // namespace
}  // namespace nexar::link
