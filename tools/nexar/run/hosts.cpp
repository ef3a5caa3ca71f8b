#include "run/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "base/quantity.hpp"
#include "base/try.hpp"

namespace nexar::run {

namespace {

constexpr std::size_t kMaxHosts = 1024;
constexpr std::size_t kMaxHostBytes = 320;  // a user name, an @, and the longest DNS name

Error bad(std::string why) {
    return {Errc::invalid_argument, std::move(why)};
}

struct Host {
    std::string name;
    std::optional<std::uint32_t> slots{};
};

Result<void> check_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("-_.:%@").find(c) != std::string_view::npos;
    };
    // ssh would take a name that begins with a hyphen for an option.
    if (name.empty() || name.size() > kMaxHostBytes || name.starts_with('-') ||
        !std::ranges::all_of(name, allowed)) {
        return bad(fmt::format("--host: {} is not a valid host name", in_quotes(name)));
    }
    return {};
}

/// `a`, `a:2`, `user@a:2`, `[fd00::1]:2`, `fd00::1`.
Result<Host> parse_host(std::string_view text) {
    Host host{.name = std::string(text)};
    std::string_view slots;
    const std::size_t colon = text.rfind(':');
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        const std::string_view behind =
            close == std::string_view::npos ? "" : text.substr(close + 1);
        if (close == std::string_view::npos || (!behind.empty() && !behind.starts_with(':'))) {
            return bad(fmt::format("--host: {} is not a valid host name", in_quotes(text)));
        }
        host.name = text.substr(1, close - 1);
        slots = behind;
    } else if (colon != std::string_view::npos && text.find(':') == colon) {
        host.name = text.substr(0, colon);
        slots = text.substr(colon);
    }
    NEXAR_TRY(check_name(host.name));
    if (!slots.empty()) {
        const auto number = parse_integer(slots.substr(1));
        if (!number || *number < 1 || *number > kMostRanks) {
            return bad(
                fmt::format("--host: {}: the number of ranks must be a whole number from 1 "
                            "to {}",
                            in_quotes(text), kMostRanks));
        }
        host.slots = static_cast<std::uint32_t>(*number);
    }
    return host;
}

Result<std::vector<Host>> parse_hosts(std::string_view text) {
    std::vector<Host> hosts;
    while (true) {
        const std::size_t comma = text.find(',');
        NEXAR_TRY_VALUE(host, parse_host(text.substr(0, comma)));
        if (std::ranges::find(hosts, host.name, &Host::name) != hosts.end()) {
            return bad(fmt::format("--host: {} is listed twice; write {}:2 for two ranks",
                                   in_quotes(host.name), printable(host.name)));
        }
        hosts.push_back(std::move(host));
        if (hosts.size() > kMaxHosts)
            return bad(fmt::format("--host: more than {} hosts", kMaxHosts));
        if (comma == std::string_view::npos) return hosts;
        text.remove_prefix(comma + 1);
    }
}

/// How many ranks each host gets.
Result<void> fill(std::vector<Host>& hosts, std::optional<std::uint32_t> ranks) {
    const auto with_slots =
        std::ranges::count_if(hosts, [](const Host& h) { return h.slots.has_value(); });
    if (with_slots == 0) {
        if (!ranks) return bad("the number of ranks is missing; give it with -n, such as -n 4");
        const auto number = static_cast<std::uint32_t>(hosts.size());
        for (std::uint32_t i = 0; i < number; ++i) {
            hosts[i].slots = *ranks / number + (i < *ranks % number ? 1 : 0);
        }
        return {};
    }
    if (std::cmp_not_equal(with_slots, hosts.size())) {
        return bad("--host: give a number of ranks to all hosts (a:2,b:2), or to none");
    }
    std::uint64_t total = 0;
    for (const Host& host : hosts) total += host.slots.value_or(0);
    if (total > kMostRanks) {
        return bad(fmt::format("--host: {} ranks exceed the limit of {}", total, kMostRanks));
    }
    if (ranks && *ranks > total) {
        return bad(fmt::format("-n {} exceeds the {} ranks that --host allows", *ranks, total));
    }
    std::uint32_t left = ranks.value_or(static_cast<std::uint32_t>(total));
    for (Host& host : hosts) {
        const std::uint32_t share = std::min(host.slots.value_or(0), left);
        host.slots = share;
        left -= share;
    }
    return {};
}

}  // namespace

Result<std::vector<HostShare>> share_ranks(std::string_view hosts,
                                           std::optional<std::uint32_t> ranks) {
    NEXAR_TRY_VALUE(parsed, parse_hosts(hosts.empty() ? "localhost" : hosts));
    if (ranks && (*ranks == 0 || *ranks > kMostRanks)) {
        return bad(fmt::format("-n: the number of ranks must be from 1 to {}", kMostRanks));
    }
    NEXAR_TRY(fill(parsed, ranks));
    std::vector<HostShare> shares;
    std::uint32_t first = 0;
    for (Host& host : parsed) {
        const std::uint32_t count = host.slots.value_or(0);
        if (count == 0) continue;
        shares.push_back({.host = std::move(host.name), .first_rank = first, .count = count});
        first += count;
    }
    return shares;
}

}  // namespace nexar::run
