#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "base/types.hpp"

namespace nexar::routing {

/// Only packets up to this size are split: QUIC requires that a path carries them, and finds out by
/// path MTU discovery whether larger ones pass.
inline constexpr std::size_t kMaxSplitBytes = 1200;

struct PartsLimits {
    std::size_t per_source = 64;
    std::size_t total = 1024;
    Duration longest = std::chrono::milliseconds(100);
};

/// Every part is counted in `parts`, and when it no longer waits in one of the others: parts =
/// 2 * joined + repeated + too_large + crowded_out + expired + Parts::waiting().
struct PartsCounts {
    std::uint64_t parts = 0;
    std::uint64_t joined = 0;  // packets
    std::uint64_t repeated = 0;
    std::uint64_t too_large = 0;
    std::uint64_t crowded_out = 0;
    std::uint64_t expired = 0;
};

/// One part of a packet that was split.
struct Part {
    Rank source{};
    std::uint32_t number = 0;  // of the packet; the source counts
    bool second = false;
    std::span<const std::byte> bytes{};
};

/// Joins the two parts of split packets at their target.
///
/// The part that arrives first waits for the other one of the same source and number. When a
/// source, or all of them together, have too many incomplete packets, the oldest one is dropped. A
/// hostile relay can mix the parts of different packets; the connection discards the result, whose
/// authentication fails. So a joined packet need not be genuine, but the bounds must hold: at most
/// PartsLimits::total times kMaxSplitBytes, plus the containers.
///
/// `now` never goes back.
class Parts {
public:
    enum class Result : std::uint8_t { waits, joined, dropped };

    explicit Parts(const PartsLimits& limits = {}) : limits_(limits) {}

    /// Copies the part if it has to wait. `packet` is set when it is joined.
    Result arrived(TimePoint now, const Part& part, std::vector<std::byte>& packet);

    /// Drops what has waited too long.
    void expire(TimePoint now);
    /// When expire() has something to do.
    std::optional<TimePoint> next_deadline() const;

    std::size_t waiting() const noexcept { return by_age_.size(); }
    std::size_t waiting_of(Rank source) const;
    std::size_t sources() const noexcept { return sources_.size(); }
    const PartsCounts& counts() const noexcept { return counts_; }

private:
    struct Incomplete {
        Rank source{};
        std::uint32_t number = 0;
        bool second = false;
        TimePoint since{};
        std::vector<std::byte> bytes{};
    };
    using Place = std::list<Incomplete>::iterator;

    std::optional<Place> find(const Part& part);
    Result join(Place first, const Part& part, std::vector<std::byte>& packet);
    void keep(TimePoint now, const Part& part);
    void drop(Place place);

    const PartsLimits limits_;
    std::list<Incomplete> by_age_{};  // the oldest first
    /// The oldest first. At most per_source each, so that a search is short.
    std::unordered_map<Rank, std::vector<Place>> sources_{};
    PartsCounts counts_{};
};

}  // namespace nexar::routing
