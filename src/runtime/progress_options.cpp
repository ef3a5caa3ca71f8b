#include "runtime/progress_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/settings.hpp"

namespace nexar::runtime {

static_assert(static_cast<std::size_t>(Waiting::sleep) == kProgresses.size() - 1);

Progress::Options progress_options(const NodeOptions& options) noexcept {
    return {.drive = options.progressing == Progressing::user_loop ? Progress::Drive::user_loop
                                                                   : Progress::Drive::background,
            .waiting = options.waiting.value_or(Waiting::automatic),
            .spin = options.spin};
}

std::vector<NamedValue> progress_settings(const NodeOptions& options) {
    std::vector<NamedValue> values;
    if (options.waiting) {
        const auto index = static_cast<std::size_t>(*options.waiting);
        values.push_back({"progress", std::string(kProgresses.at(index))});
    }
    if (options.spin) values.push_back({"spin", fmt::format("{}ns", options.spin->count())});
    return values;
}

NodeOptions with_progress_settings(NodeOptions options, const Config& config) {
    const auto chosen = std::ranges::find(kProgresses, config.choice("progress"));
    options.waiting = static_cast<Waiting>(chosen - kProgresses.begin());
    options.spin = config.duration("spin");
    return options;
}

std::size_t processes_on_host(const schedule::Links& links, std::size_t members, std::size_t me,
                              std::size_t here) noexcept {
    const std::uint32_t host = links.host(static_cast<std::uint32_t>(me));
    std::size_t ranks = 0;
    for (std::uint32_t rank = 0; rank < members; ++rank) {
        if (links.host(rank) == host) ++ranks;
    }
    return ranks > here ? ranks - here + 1 : 1;
}

}  // namespace nexar::runtime
