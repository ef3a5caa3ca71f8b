#include "base/config_cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "config_table.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Config resolved_test_table(const ConfigSources& sources = {}) {
    return Config::resolve(kTestTable, sources).value();
}

Config adopted(const Config& config, const std::vector<ClusterSetting>& cluster) {
    auto result = adopt_cluster_settings(config, cluster);
    EXPECT_TRUE(result) << result.error().what();
    return result ? *result : config;
}

std::string why_not(const Config& config, const std::vector<ClusterSetting>& cluster) {
    const auto result = adopt_cluster_settings(config, cluster);
    if (result) return "it was adopted";
    EXPECT_EQ(result.error().code(), Errc::bad_config);
    return result.error().cause();
}

TEST(ClusterSettings, lists_cluster_scope_only_with_canonical_values_and_origins) {
    const auto list = cluster_settings(resolved_test_table(
        {.code = {{"eager_limit", "2048"}},
         .environment = {{"NEXAR_HEARTBEAT", "0.2s"}, {"NEXAR_COLOUR", "red"}}}));
    ASSERT_EQ(list.size(), 4U);
    EXPECT_EQ(list[0].name, "retry_count");
    EXPECT_EQ(list[0].value, "3");
    EXPECT_EQ(list[0].origin, "default");
    EXPECT_EQ(list[1].name, "eager_limit");
    EXPECT_EQ(list[1].value, "2KiB");
    EXPECT_EQ(list[1].origin, "code");
    EXPECT_EQ(list[2].value, "200ms");
    EXPECT_EQ(list[2].origin, "environment NEXAR_HEARTBEAT");
    EXPECT_EQ(list[3].name, "cluster_name");
}

TEST(AdoptClusterSettings, fills_in_values_that_are_not_set_locally) {
    const Config own = resolved_test_table({.environment = {{"NEXAR_COLOUR", "red"}}});
    const Config config =
        adopted(own, {{"heartbeat", "200ms", "code"}, {"retry_count", "9", "code"}});
    EXPECT_EQ(config.duration("heartbeat"), 200ms);
    EXPECT_EQ(config.integer("retry_count"), 9);
    EXPECT_EQ(to_text(config.entry("heartbeat").origin), "cluster");
    EXPECT_EQ(config.size("eager_limit"), 16'384U);
    EXPECT_EQ(to_text(config.entry("eager_limit").origin), "default");
    EXPECT_EQ(config.choice("colour"), "red");
    EXPECT_EQ(own.duration("heartbeat"), 50ms) << "a Config is immutable";
}

TEST(AdoptClusterSettings, accepts_an_equal_value_in_another_spelling) {
    const Config own = resolved_test_table({.flags = {{"--nexar-eager-limit", "2048B"}}});
    const Config config = adopted(own, {{"eager_limit", "2KiB", "code"}});
    EXPECT_EQ(to_text(config.entry("eager_limit").origin), "command line --nexar-eager-limit");
}

TEST(AdoptClusterSettings, reports_both_values_and_origins_of_a_conflict) {
    const Config own = resolved_test_table({.environment = {{"NEXAR_HEARTBEAT", "20ms"}}});
    EXPECT_EQ(why_not(own, {{"heartbeat", "50ms", "file /etc/nexar.toml:7"}}),
              "heartbeat: this node has \"20ms\" (environment NEXAR_HEARTBEAT), the cluster has "
              "\"50ms\" (file /etc/nexar.toml:7); they must be equal");
}

TEST(AdoptClusterSettings, an_explicitly_set_default_counts_as_set) {
    const Config own = resolved_test_table({.code = {{"heartbeat", "50ms"}}});
    EXPECT_THAT(why_not(own, {{"heartbeat", "60ms", "default"}}),
                AllOf(HasSubstr("\"50ms\" (code)"), HasSubstr("\"60ms\" (default)")));
}

TEST(AdoptClusterSettings, a_round_trip_between_equal_nodes_changes_nothing) {
    const ConfigSources sources{.code = {{"heartbeat", "70ms"}, {"cluster_name", ""}}};
    const Config config =
        adopted(resolved_test_table(sources), cluster_settings(resolved_test_table(sources)));
    EXPECT_EQ(config.duration("heartbeat"), 70ms);
    EXPECT_EQ(to_text(config.entry("heartbeat").origin), "code");
}

TEST(AdoptClusterSettings, adopts_new_values_when_it_joins_again) {
    const Config first = adopted(resolved_test_table(), {{"heartbeat", "70ms", "code"}});
    const Config second = adopted(first, {{"heartbeat", "80ms", "code"}});
    EXPECT_EQ(second.duration("heartbeat"), 80ms);
}

TEST(AdoptClusterSettings, rejects_settings_that_it_cannot_adopt) {
    EXPECT_THAT(why_not(resolved_test_table(), {{"warp_speed", "9", "code"}}),
                StartsWith("\"warp_speed\": the cluster sets it (code), but this version"));
    EXPECT_THAT(why_not(resolved_test_table(), {{"colour", "red", "code"}}),
                HasSubstr("this version of nexar does not know the setting"))
        << "the cluster must not set local settings";
    EXPECT_THAT(why_not(resolved_test_table(), {{"heartbeat", "1h", "code"}}),
                StartsWith("heartbeat (cluster, code): \"1h\" is out of range; allowed: "));
    EXPECT_THAT(why_not(resolved_test_table(),
                        {{"heartbeat", "70ms", "code"}, {"heartbeat", "80ms", "code"}}),
                HasSubstr("heartbeat: the cluster sent it twice"));
    EXPECT_THAT(why_not(resolved_test_table({.code = {{"heartbeat", "70ms"}}}), {}),
                HasSubstr("\"70ms\" (code), but the cluster does not know the setting"));
}

TEST(AdoptClusterSettings, reports_all_problems_and_makes_foreign_text_printable) {
    const std::string cause =
        why_not(resolved_test_table(), {{"a\nb", "1", "x\ny"}, {"heartbeat", "\x1b", "z\nz"}});
    EXPECT_THAT(cause, StartsWith("2 problems:\n  \"a\\nb\": the cluster sets it (x\\ny)"));
    EXPECT_THAT(cause, HasSubstr("(cluster, z\\nz): \"\\x1b\""));
}

}  // namespace
}  // namespace nexar
