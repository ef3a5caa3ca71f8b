// Feeds broken input to Config::resolve, which must return a value or bad_config for any input.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/config_cluster.hpp"
#include "config_table.hpp"
#include "support/seed.hpp"

namespace nexar {
namespace {

constexpr int kRounds = 20'000;

// The ingredients of random input, separated by bars.
constexpr std::string_view kPieces =
    "verify|retry_count|load_factor|eager_limit|heartbeat|colour|cluster_name|unknown| = "
    "|=|\n|\r\n|"
    "\"|'''|\"\"\"|[|]|[[|{|}|,|#|true|false|0|1|-1|0.5|1e9|nan|inf|64KiB|250ms|red|default|"
    "\\u0000|"
    "\\|9223372036854775807|2024-01-31|12:30:00|0x1f|\xff|\xef\xbb\xbf|\t|.|_|\x1b|--|NEXAR_|--"
    "nexar-";

std::vector<std::string_view> split_pieces() {
    std::vector<std::string_view> pieces;
    for (std::string_view rest = kPieces; !rest.empty();) {
        pieces.push_back(rest.substr(0, rest.find('|')));
        rest.remove_prefix(std::min(rest.size(), pieces.back().size() + 1));
    }
    return pieces;
}

class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t n) { return random_() % n; }

    std::string soup(std::size_t most_pieces) {
        std::string text;
        for (std::size_t n = below(most_pieces + 1); n > 0; --n) text += piece();
        return text;
    }

    /// Valid text with some bytes changed, duplicated or removed.
    std::string damaged(std::string text) {
        for (std::size_t n = below(4); n > 0 && !text.empty(); --n) {
            const std::size_t at = below(text.size());
            switch (below(4)) {
                case 0:
                    text[at] = static_cast<char>(random_());
                    break;
                case 1:
                    text.erase(at, 1 + below(5));
                    break;
                case 2:
                    text.insert(at, piece());
                    break;
                default:
                    text.insert(at, text.substr(at, below(20)));
            }
        }
        return text;
    }

private:
    std::string_view piece() { return pieces_[below(pieces_.size())]; }

    std::mt19937_64 random_;
    std::vector<std::string_view> pieces_ = split_pieces();
};

constexpr std::string_view kGoodFile =
    "verify = false\nretry_count = 7\nload_factor = 0.25\neager_limit = \"64KiB\"\n"
    "heartbeat = \"250ms\"\ncolour = \"red\"\ncluster_name = \"north\"\n";

ConfigSources broken_sources(Mutator& mutator) {
    ConfigSources sources;
    for (std::size_t n = mutator.below(3); n > 0; --n) {
        const bool soup = mutator.below(2) == 0;
        sources.files.push_back(
            {.path = mutator.soup(2),
             .text = soup ? mutator.soup(20) : mutator.damaged(std::string(kGoodFile))});
    }
    for (std::size_t n = mutator.below(4); n > 0; --n) {
        sources.environment.push_back({mutator.damaged("NEXAR_HEARTBEAT"), mutator.soup(3)});
        sources.environment.push_back({"NEXAR_EAGER_LIMIT", mutator.damaged("64KiB")});
    }
    std::vector<std::string> arguments;
    for (std::size_t n = mutator.below(6); n > 0; --n) {
        arguments.push_back(mutator.damaged("--nexar-load-factor=0.25"));
        arguments.push_back(mutator.soup(2));
    }
    sources.flags = split_arguments(arguments).flags;
    if (mutator.below(4) == 0) sources.code.push_back({mutator.damaged("colour"), mutator.soup(1)});
    return sources;
}

TEST(ConfigRandom, resolve_returns_a_value_or_bad_config) {
    Mutator mutator(test_seed(3));
    int resolved = 0;
    int refused = 0;
    for (int i = 0; i < kRounds; ++i) {
        const auto config = Config::resolve(kTestTable, broken_sources(mutator));
        if (!config) {
            ++refused;
            ASSERT_EQ(config.error().code(), Errc::bad_config);
            ASSERT_LT(config.error().cause().size(), 32'768U);
            continue;
        }
        ++resolved;
        for (const Config::Entry& entry : config->entries()) {
            // Every accepted value is allowed, and its canonical text has the same meaning.
            const auto again = read_value(*entry.setting, TextValue{to_text(entry.value)});
            ASSERT_TRUE(again) << again.error().what();
            ASSERT_EQ(*again, entry.value) << entry.setting->name;
        }
    }
    // Both outcomes must be common, otherwise the test proves little.
    EXPECT_GT(resolved, kRounds / 50);
    EXPECT_GT(refused, kRounds / 50);
}

TEST(ConfigRandom, cluster_settings_are_adopted_or_rejected) {
    Mutator mutator(test_seed(4));
    const Config own = Config::resolve(kTestTable, {.code = {{"heartbeat", "70ms"}}}).value();
    int adopted = 0;
    int refused = 0;
    for (int i = 0; i < kRounds; ++i) {
        std::vector<ClusterSetting> cluster = {{"heartbeat", "70ms", "code"}};
        for (std::size_t n = mutator.below(3); n > 0; --n) {
            cluster.push_back(
                {mutator.damaged("eager_limit"), mutator.damaged("64KiB"), mutator.soup(2)});
        }
        const auto config = adopt_cluster_settings(own, cluster);
        if (config) {
            ++adopted;
        } else {
            ++refused;
            ASSERT_EQ(config.error().code(), Errc::bad_config);
        }
    }
    EXPECT_GT(adopted, kRounds / 50);
    EXPECT_GT(refused, kRounds / 50);
}

}  // namespace
}  // namespace nexar
