#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/time.hpp"

namespace nexar::runtime {

/// Decides which refusals a seed logs: the first one for each host and reason, then at most one per
/// minute, with the number of refusals since. A process that a full cluster refuses keeps retrying
/// and must not fill the log. Sans-I/O.
class RefusalLog {
public:
    static constexpr Duration kPause = std::chrono::minutes(1);
    static constexpr std::size_t kMostKept = 256;

    /// The line to log now, if any.
    std::optional<std::string> note(TimePoint now, const std::string& from, const std::string& why);

private:
    struct Entry {
        TimePoint logged_at{};
        std::uint64_t unlogged = 0;
    };

    void make_room(TimePoint now);

    std::map<std::pair<std::string, std::string>, Entry> entries_;  // by host and reason
};

}  // namespace nexar::runtime
