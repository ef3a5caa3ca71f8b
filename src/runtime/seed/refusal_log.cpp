#include "runtime/seed/refusal_log.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nexar::runtime {

std::optional<std::string> RefusalLog::note(TimePoint now, const std::string& from,
                                            const std::string& why) {
    const auto found = entries_.find({from, why});
    if (found == entries_.end()) {
        make_room(now);
        entries_[{from, why}] = {.logged_at = now};
        return fmt::format("{} was rejected: {}", from, why);
    }
    Entry& entry = found->second;
    const Duration since = now - entry.logged_at;
    if (since < kPause) {
        ++entry.unlogged;
        return std::nullopt;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
    std::string line = fmt::format("{} was rejected: {}", from, why);
    if (entry.unlogged > 0) {
        line += fmt::format(" ({} {} since the last such line, {} s ago)", entry.unlogged,
                            entry.unlogged == 1 ? "refusal" : "refusals", seconds);
    }
    entry = {.logged_at = now};
    return line;
}

void RefusalLog::make_room(TimePoint now) {
    if (entries_.size() < kMostKept) return;
    std::erase_if(entries_,
                  [&](const auto& entry) { return now - entry.second.logged_at >= kPause; });
    if (entries_.size() < kMostKept) return;
    entries_.erase(std::ranges::min_element(
        entries_, {}, [](const auto& entry) { return entry.second.logged_at; }));
}

}  // namespace nexar::runtime
