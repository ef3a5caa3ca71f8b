#include "runtime/collective_profile.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/try.hpp"

namespace nexar::runtime {

namespace {

double seconds(Duration duration) noexcept {
    return std::chrono::duration<double>(duration).count();
}

double per_byte(std::uint64_t bytes_per_second) noexcept {
    return 1.0 / static_cast<double>(bytes_per_second);
}

/// The rates within a host if no setting gives them.
schedule::Rates host_rates(const schedule::Rates& fabric, bool shared_memory) {
    schedule::Rates rates = shared_memory ? schedule::kSharedMemoryRates : fabric;
    rates.reduce_byte = fabric.reduce_byte;
    rates.copy_byte = fabric.copy_byte;
    rates.ranks_per_core = fabric.ranks_per_core;
    rates.shared_byte = 0;  // ranks of one host do not need the network
    return rates;
}

}  // namespace

Result<schedule::Profile> collective_profile(const Config& config) {
    schedule::Profile profile;
    profile.forced = config.text("collective_algorithm");
    NEXAR_TRY(schedule::check_forced(profile.forced));
    profile.segment_bytes = config.size("collective_segment");
    profile.eager_bytes = config.size("collective_eager_limit");
    if (config.choice("reproducibility") == "runs") {
        profile.reproducibility = schedule::Reproducibility::runs;
    }
    profile.rates = {.latency = seconds(config.duration("fabric_latency")),
                     .per_message = seconds(config.duration("fabric_per_message")),
                     .per_byte = per_byte(config.size("fabric_bandwidth")),
                     .both_byte = per_byte(config.size("fabric_both_bandwidth")),
                     .reduce_byte = per_byte(config.size("fabric_reduce")),
                     .copy_byte = per_byte(config.size("fabric_copy")),
                     .fill_bytes = static_cast<double>(config.size("fabric_fill")),
                     .ranks_per_core = config.real("fabric_ranks_per_core")};
    if (const std::uint64_t shared = config.size("fabric_shared_bandwidth"); shared != 0) {
        profile.rates.shared_byte = per_byte(shared);
    }
    profile.host_rates = host_rates(profile.rates, config.choice("link") != "quic");
    const auto set_duration = [&](double& rate, std::string_view name) {
        if (const Duration set = config.duration(name); set != Duration{}) rate = seconds(set);
    };
    const auto set_bandwidth = [&](double& rate, std::string_view name) {
        if (const std::uint64_t set = config.size(name); set != 0) rate = per_byte(set);
    };
    set_duration(profile.host_rates.latency, "host_latency");
    set_duration(profile.host_rates.per_message, "host_per_message");
    set_bandwidth(profile.host_rates.per_byte, "host_bandwidth");
    set_bandwidth(profile.host_rates.both_byte, "host_both_bandwidth");
    if (const std::uint64_t fill = config.size("host_fill"); fill != 0) {
        profile.host_rates.fill_bytes = static_cast<double>(fill);
    }
    profile.memory.latency = seconds(config.duration("memory_latency"));
    profile.memory.per_peer = seconds(config.duration("memory_per_peer"));
    profile.memory.put_byte = per_byte(config.size("memory_put"));
    profile.memory.read_byte = per_byte(config.size("memory_read"));
    return profile;
}

std::vector<Address> addresses_of(std::span<const Member> members) {
    std::vector<Address> all;
    for (const Member& member : members) {
        all.insert(all.end(), member.addresses.begin(), member.addresses.end());
    }
    return all;
}

schedule::Links links_of(std::span<const Member> members) {
    std::map<std::vector<std::string>, std::uint32_t> first;  // the first member on each host
    std::vector<std::uint32_t> hosts;
    hosts.reserve(members.size());
    for (const Member& member : members) {
        std::vector<std::string> names;
        names.reserve(member.addresses.size());
        for (const Address& address : member.addresses) {
            names.push_back(address.with_port(0).text());
        }
        std::ranges::sort(names);
        const auto self = static_cast<std::uint32_t>(hosts.size());
        const bool known = !names.empty();
        hosts.push_back(known ? first.try_emplace(std::move(names), self).first->second : self);
    }
    return schedule::Links(hosts);
}

}  // namespace nexar::runtime
