#include "runtime/launch.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "harness.hpp"
#include "wire/limits.hpp"

/// The environment of a process, one `NAME=value` per line.
namespace nexar::fuzz {

namespace {

std::vector<NamedValue> environment_of(std::string_view text) {
    std::vector<NamedValue> environment;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        environment.push_back({.name = std::string(line.substr(0, equals)),
                               .value = std::string(line.substr(equals + 1))});
    }
    return environment;
}

void check(const Launch& launch) {
    NEXAR_ASSERT(launch.world >= 1 && launch.world <= wire::kMaxWorldSize);
    NEXAR_ASSERT(launch.rank.value() < launch.world);
    NEXAR_ASSERT(!launch.local_size || *launch.local_size <= launch.world);
    NEXAR_ASSERT(!launch.local_rank || !launch.local_size ||
                 *launch.local_rank < *launch.local_size);
    NEXAR_ASSERT(!launch.variables.empty(), "a launch must come from variables");
    if (launch.seed) {
        NEXAR_ASSERT(!launch.seed->host.empty() && launch.seed->port != 0);
        NEXAR_ASSERT(!first_unprintable(launch.seed->host));
    }
    NEXAR_ASSERT(!first_unprintable(to_text(launch)), "it must be safe to log");
}

}  // namespace

bool accepts_launch(std::span<const std::byte> input) {
    const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
    const auto environment = environment_of(text);
    const auto launch = detect_launch(environment);
    if (!launch) {
        NEXAR_ASSERT(launch.error().code() == Errc::bad_config);
        NEXAR_ASSERT(!first_unprintable(launch.error().cause()));
        return false;
    }
    const std::optional<Launch>& found = *launch;
    if (found) check(*found);
    return found.has_value();
}

}  // namespace nexar::fuzz
