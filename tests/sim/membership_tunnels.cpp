#include "sim/membership_tunnels.hpp"

#include <algorithm>
#include <bit>

#include "base/mix.hpp"

namespace nexar::testing {
namespace {

constexpr Duration kIdle = 5s;

}  // namespace

MembershipTunnels::MembershipTunnels(const Settings& settings)
    : settings_(settings), cuts_(kMost * kMost), tunnels_(kMost * kMost) {}

void MembershipTunnels::place(std::size_t machine, std::uint64_t neighbours) {
    own_[machine] = neighbours & ~bit(machine);
    links_ = own_;
    for (std::size_t a = 0; a < kMost; ++a) {
        for (std::uint64_t rest = own_[a]; rest != 0; rest &= rest - 1)
            links_[static_cast<std::size_t>(std::countr_zero(rest))] |= bit(a);
    }
}

void MembershipTunnels::set_relaying(TimePoint now, std::size_t machine, bool value) {
    if (relays(machine) == value) return;
    relaying_ ^= bit(machine);
    down_since_[machine] = now;
}

void MembershipTunnels::set_cut(TimePoint now, std::size_t from, std::size_t to, bool cut) {
    std::optional<TimePoint>& since = cuts_[from * kMost + to];
    if (!cut) {
        since.reset();
    } else if (!since) {
        since = now;
    }
}

void MembershipTunnels::close(std::size_t machine) {
    for (std::size_t other = 0; other < kMost; ++other)
        tunnels_[std::min(machine, other) * kMost + std::max(machine, other)].used.reset();
}

bool MembershipTunnels::is_cut(std::size_t a, std::size_t b) const {
    return cuts_[a * kMost + b].has_value() || cuts_[b * kMost + a].has_value();
}

bool MembershipTunnels::linked(std::size_t a, std::size_t b) const {
    return (links_[a] & bit(b)) != 0 && !is_cut(a, b);
}

std::uint64_t MembershipTunnels::reach(std::size_t from, std::uint64_t through, bool uncut) const {
    std::uint64_t found = bit(from);
    std::uint64_t open = found;  // not expanded yet
    while (open != 0) {
        const auto at = static_cast<std::size_t>(std::countr_zero(open));
        open &= open - 1;
        for (std::uint64_t rest = links_[at] & ~found; rest != 0; rest &= rest - 1) {
            const auto next = static_cast<std::size_t>(std::countr_zero(rest));
            if (!uncut && is_cut(at, next)) continue;
            found |= bit(next);
            open |= bit(next) & through;
        }
    }
    return found;
}

/// When a member knows of a failure.
TimePoint MembershipTunnels::noticed(std::size_t member, std::uint64_t what,
                                     TimePoint since) const {
    const auto range =
        static_cast<std::uint64_t>((settings_.most_reroute - settings_.least_reroute).count()) + 1;
    const auto time = static_cast<std::uint64_t>(since.time_since_epoch().count());
    const std::uint64_t extra = mixed(time ^ mixed(what * kMost + member)) % range;
    return since + settings_.least_reroute + Duration(static_cast<Duration::rep>(extra));
}

TimePoint MembershipTunnels::down_until(std::size_t member, std::size_t machine) const {
    return noticed(member, machine, down_since_[machine]);
}

TimePoint MembershipTunnels::cut_until(std::size_t member, std::size_t a, std::size_t b) const {
    const auto& one = cuts_[a * kMost + b];
    const auto& other = cuts_[b * kMost + a];
    const TimePoint since =
        std::min(one.value_or(TimePoint::max()), other.value_or(TimePoint::max()));
    return noticed(member, kMost + std::min(a, b) * kMost + std::max(a, b), since);
}

/// As far as `from` knows; empty: there is none.
MembershipTunnels::Path MembershipTunnels::shortest(TimePoint now, std::size_t from,
                                                    std::size_t to) const {
    std::array<std::size_t, kMost> before{};
    std::array<std::size_t, kMost> found{};
    std::size_t count = 0;
    found[count++] = from;
    std::uint64_t seen = bit(from);
    const auto first =
        settings_.same_relays ? 0 : static_cast<int>(mixed(from * kMost + to) % kMost);
    for (std::size_t i = 0; i < count && (seen & bit(to)) == 0; ++i) {
        const std::size_t at = found[i];
        for (std::uint64_t rest = std::rotr(links_[at] & ~seen, first); rest != 0;
             rest &= rest - 1) {
            const auto next = static_cast<std::size_t>(std::countr_zero(rest) + first) % kMost;
            if (next != to && !relays(next) && now >= down_until(from, next)) continue;
            if (is_cut(at, next) && now >= cut_until(from, at, next)) continue;
            seen |= bit(next);
            before[next] = at;
            found[count++] = next;
        }
    }
    Path path;
    if ((seen & bit(to)) == 0) return path;
    for (std::size_t at = to; at != from; at = before[at]) path.push_back(at);
    path.push_back(from);
    return path;
}

std::optional<MembershipTunnels::Way> MembershipTunnels::way(TimePoint now, std::size_t from,
                                                             std::size_t to, bool datagram,
                                                             Random& random) {
    const Path path = linked(from, to) ? Path{to, from} : shortest(now, from, to);
    if (path.empty()) return std::nullopt;
    Way way{.hops = path.size() - 1, .from = now};
    for (std::size_t i = 0; i < way.hops; ++i) {
        if (i > 0 && !relays(path[i])) way.from = std::max(way.from, down_until(from, path[i]));
        if (is_cut(path[i], path[i + 1]))
            way.from = std::max(way.from, cut_until(from, path[i], path[i + 1]));
    }
    way.late = way.from > now;
    if (way.late && (datagram || settings_.break_lanes)) return std::nullopt;
    Tunnel& tunnel = tunnels_[std::min(from, to) * kMost + std::max(from, to)];
    if (!tunnel.used || now - *tunnel.used > kIdle) {
        const auto most = static_cast<std::uint64_t>(settings_.most_opening.count()) + 1;
        tunnel.opened = now + Duration(static_cast<Duration::rep>(random.below(most)));
    }
    tunnel.used = now;
    if (datagram && now < tunnel.opened) return std::nullopt;
    way.from = std::max(way.from, tunnel.opened);
    return way;
}

}  // namespace nexar::testing
