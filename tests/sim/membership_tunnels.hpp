#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "membership/membership.hpp"

namespace nexar::testing {

using namespace std::chrono_literals;

/// How messages travel in a sparse topology of up to 64 machines. Neighbours are connected, where a
/// member and its neighbour may be in different views. Other messages take a shortest path through
/// machines that relay, over links that are not cut. A member learns of a failure on the path only
/// after a while; until then its datagrams are lost, and its lanes deliver late or never.
class MembershipTunnels {
public:
    static constexpr std::size_t kMost = 64;  // machines

    struct Settings {
        membership::NeighboursOf neighbours{};  // empty: the topology is not sparse
        /// Until a member knows of a failure.
        Duration least_reroute = 100ms;
        Duration most_reroute = 300ms;
        /// Until a link or a tunnel works, when it is used for the first time or after 5 s.
        Duration most_opening = 5ms;
        /// A tunnel whose path fails loses the messages on its lanes.
        bool break_lanes = false;
        /// Of equally short paths, all members take those through the first machines, so that many
        /// of them share a relay. Otherwise each pair of members has an order of its own.
        bool same_relays = false;
    };
    struct Way {
        std::size_t hops = 1;
        TimePoint from{};   // the first hop begins
        bool late = false;  // the path has failed: there may be no other one
    };

    explicit MembershipTunnels(const Settings& settings);

    /// Replaces the neighbours of a machine in its own view, a bit for each.
    void place(std::size_t machine, std::uint64_t neighbours);
    void set_relaying(TimePoint now, std::size_t machine, bool relays);
    /// Cuts a direction; a link needs both.
    void set_cut(TimePoint now, std::size_t from, std::size_t to, bool cut);
    /// The process ended, and with it its links and tunnels.
    void close(std::size_t machine);

    /// True if messages travel directly.
    bool linked(std::size_t a, std::size_t b) const;
    /// The machines that `from` reaches through those whose bits are in `through`.
    std::uint64_t reach(std::size_t from, std::uint64_t through) const {
        return reach(from, through, false);
    }
    /// The same when no link is cut.
    std::uint64_t reach_uncut(std::size_t from, std::uint64_t through) const {
        return reach(from, through, true);
    }
    std::uint64_t relaying() const { return relaying_; }
    /// nullopt: the message is lost.
    std::optional<Way> way(TimePoint now, std::size_t from, std::size_t to, bool datagram,
                           Random& random);

private:
    struct Tunnel {
        std::optional<TimePoint> used{};
        TimePoint opened{};
    };
    using Path = std::vector<std::size_t>;  // machines from the destination back to the start

    static std::uint64_t bit(std::size_t machine) { return std::uint64_t{1} << machine; }
    bool relays(std::size_t machine) const { return (relaying_ & bit(machine)) != 0; }
    bool is_cut(std::size_t a, std::size_t b) const;
    std::uint64_t reach(std::size_t from, std::uint64_t through, bool uncut) const;
    TimePoint down_until(std::size_t member, std::size_t machine) const;
    TimePoint cut_until(std::size_t member, std::size_t a, std::size_t b) const;
    TimePoint noticed(std::size_t member, std::uint64_t what, TimePoint since) const;
    Path shortest(TimePoint now, std::size_t from, std::size_t to) const;

    Settings settings_;
    std::array<std::uint64_t, kMost> own_{};    // neighbours in the view of each machine
    std::array<std::uint64_t, kMost> links_{};  // in the view of either end
    std::uint64_t relaying_ = 0;
    std::array<TimePoint, kMost> down_since_{};
    std::vector<std::optional<TimePoint>> cuts_;  // by direction
    std::vector<Tunnel> tunnels_;                 // by pair, the lower machine first
};

}  // namespace nexar::testing
