#include "collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <utility>

#include "base/quantity.hpp"
#include "base/try.hpp"
#include "command.hpp"
#include "runtime/collective_profile.hpp"
#include "runtime/config_sources.hpp"

namespace nexar {

namespace {

using schedule::Collective;

constexpr std::uint32_t kMostRanks = 65536;
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 23U;  // of about 100 bytes each

/// `rates`, with those that the question gives replaced.
Result<schedule::Rates> rates_of(const CollectiveQuestion& question, schedule::Rates rates) {
    if (!question.latency.empty()) {
        NEXAR_TRY_VALUE(latency, parse_duration(question.latency));
        rates.latency = std::chrono::duration<double>(latency).count();
        // The figures describe a fabric, not the loopback of one host.
        rates.per_message = rates.latency / 4;
    }
    if (!question.bandwidth.empty()) {
        NEXAR_TRY_VALUE(rate, parse_rate(question.bandwidth));
        rates.per_byte = 1 / rate;
        rates.both_byte = rates.per_byte;
        rates.fill_bytes = 0;
    }
    if (!question.reduce.empty()) {
        NEXAR_TRY_VALUE(rate, parse_rate(question.reduce));
        rates.reduce_byte = 1 / rate;
    }
    return rates;
}

/// A whole number without sign or unit.
std::optional<std::uint32_t> number_in(std::string_view text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// The host of each rank, by --world and --hosts: "2" hosts that share the ranks evenly, "2x4"
/// hosts and ranks of each, "5,3" ranks of each host. Neighbours are on one host.
Result<std::vector<std::uint32_t>> hosts_of(const CollectiveQuestion& question) {
    constexpr std::uint32_t kUsual = 4;
    const std::string_view text = question.hosts;
    const auto refused = [&] {
        return not_allowed("list of hosts", text,
                           "a number of hosts up to that of ranks, such as 2, hosts and ranks of "
                           "each, such as 2x4, or the ranks of every host, such as 5,3");
    };
    std::vector<std::uint32_t> sizes;
    if (const auto alone = number_in(text)) {
        const std::uint32_t world = question.world.value_or(std::max(kUsual, *alone));
        const std::uint32_t hosts = *alone == 0 ? world : *alone;
        if (world == 0 || world > kMostRanks) {
            return not_allowed("world size", std::to_string(world),
                               fmt::format("1 to {}", kMostRanks));
        }
        if (hosts > world) {
            return not_allowed("number of hosts for these ranks", text,
                               fmt::format("1 to {}", world));
        }
        std::vector<std::uint32_t> machines;
        machines.reserve(world);
        for (std::uint64_t rank = 0; rank < world; ++rank) {
            machines.push_back(static_cast<std::uint32_t>(rank * hosts / world));
        }
        return machines;
    }
    if (const std::size_t times = text.find('x'); times != std::string_view::npos) {
        const auto hosts = number_in(text.substr(0, times));
        const auto each = number_in(text.substr(times + 1));
        if (!hosts || !each || *hosts > kMostRanks) return refused();
        sizes.assign(*hosts, *each);
    } else {
        for (std::string_view rest = text; !rest.empty();) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            const auto size = number_in(rest.substr(0, comma));
            if (!size) return refused();
            sizes.push_back(*size);
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }
    std::vector<std::uint32_t> machines;
    for (std::uint32_t host = 0; host < sizes.size(); ++host) {
        if (sizes[host] == 0 || sizes[host] > kMostRanks - machines.size()) return refused();
        machines.insert(machines.end(), sizes[host], host);
    }
    if (machines.empty() || text.ends_with(',')) return refused();
    if (question.world && *question.world != machines.size()) {
        return not_allowed("world size for these hosts", std::to_string(*question.world),
                           fmt::format("{}; --world can be left out", machines.size()));
    }
    return machines;
}

Result<schedule::Profile> profile_of(const CollectiveQuestion& question,
                                     const std::vector<ConfigFlag>& flags,
                                     std::span<const std::uint32_t> hosts) {
    NEXAR_TRY_VALUE(loaded, load_config({}, flags));
    NEXAR_TRY_VALUE(profile, runtime::collective_profile(loaded.config));
    profile.links = schedule::Links(hosts);
    NEXAR_TRY_VALUE(rates, rates_of(question, profile.rates));
    profile.rates = rates;
    // The options describe the slowest links.
    if (profile.links.slowest() == schedule::LinkKind::host) {
        NEXAR_TRY_VALUE(host_rates, rates_of(question, profile.host_rates));
        profile.host_rates = host_rates;
    }
    if (question.reproducibility == "runs") {
        profile.reproducibility = schedule::Reproducibility::runs;
    } else if (question.reproducibility == "ranks") {
        profile.reproducibility = schedule::Reproducibility::ranks;
    } else if (!question.reproducibility.empty()) {
        return not_allowed("reproducibility", question.reproducibility, "ranks, runs");
    }
    if (!question.algorithm.empty()) profile.forced = question.algorithm;
    if (!question.segment.empty()) {
        NEXAR_TRY_VALUE(segment, parse_size(question.segment));
        profile.segment_bytes = segment;
    }
    return profile;
}

}  // namespace

std::optional<Collective> operation_named(std::string_view name) {
    const auto* const found =
        std::ranges::find(schedule::kCollectives, name,
                          [](Collective operation) { return schedule::name(operation); });
    if (found == schedule::kCollectives.end()) return std::nullopt;
    return *found;
}

std::string operation_names() {
    std::string names;
    for (const Collective operation : schedule::kCollectives) {
        names += (names.empty() ? "" : ", ") + std::string(schedule::name(operation));
    }
    return names;
}

Error not_allowed(std::string_view what, std::string_view given, std::string_view allowed) {
    return {Errc::invalid_argument,
            fmt::format("\"{}\" is not a valid {}; allowed: {}", given, what, allowed)};
}

void add_collective_options(CLI::App& command, CollectiveQuestion& question) {
    command
        .add_option("operation", question.operation, "The collective: all_reduce, broadcast, ...")
        ->required()
        ->type_name("OPERATION");
    command.add_option("--bytes", question.bytes, "Size of the whole vector, such as 64MiB")
        ->type_name("SIZE")
        ->capture_default_str();
    command
        .add_option("--world", question.world, "Number of ranks; default: those of --hosts, or 4")
        ->type_name("N");
    command
        .add_option("--hosts", question.hosts,
                    "Hosts that the ranks run on: their number (0: one per rank), 2x4 for 2 hosts "
                    "with 4 ranks each, or the ranks of every host, such as 5,3")
        ->type_name("HOSTS")
        ->capture_default_str();
    command.add_option("--root", question.root, "Root of the operation, if it has one")
        ->type_name("RANK")
        ->capture_default_str();
    command.add_option("--element", question.element_bytes, "Size of an element")
        ->type_name("BYTES")
        ->capture_default_str();
    command.add_flag("--ordered", question.ordered,
                     "The operator does not commute, so operands keep the order of ranks");
    command
        .add_option("--reproducibility", question.reproducibility,
                    "ranks: same bits on all ranks; runs: also in every run with as many ranks")
        ->type_name("KIND");
    command.add_option("--algorithm", question.algorithm, "Use this algorithm")->type_name("NAME");
    command.add_option("--segment", question.segment, "Size of a segment; 0: the fastest")
        ->type_name("SIZE");
    command
        .add_option("--latency", question.latency, "One-way latency between ranks, such as 10us")
        ->type_name("TIME");
    command
        .add_option("--bandwidth", question.bandwidth,
                    "Bandwidth of a rank, such as 100Gbps or 1.5GB/s")
        ->type_name("RATE");
    command.add_option("--reduce", question.reduce, "Rate at which a rank folds, such as 8GB/s")
        ->type_name("RATE");
}

Result<AskedCollective> understood(const CollectiveQuestion& question,
                                   const std::vector<ConfigFlag>& flags) {
    AskedCollective asked;
    const auto named = operation_named(question.operation);
    if (!named) return not_allowed("operation", question.operation, operation_names());
    const Collective operation = *named;
    NEXAR_TRY_VALUE(bytes, parse_size(question.bytes));
    NEXAR_TRY_VALUE(hosts, hosts_of(question));
    const auto world = static_cast<std::uint32_t>(hosts.size());
    NEXAR_TRY_VALUE(profile, profile_of(question, flags, hosts));
    if (question.root >= world) {
        return not_allowed("rank of this world", std::to_string(question.root),
                           fmt::format("0 to {}", world - 1));
    }
    if (question.element_bytes == 0 || bytes % question.element_bytes != 0) {
        return not_allowed("element size", std::to_string(question.element_bytes),
                           "a divisor of --bytes");
    }
    std::uint64_t count = operation == Collective::barrier ? 0 : bytes / question.element_bytes;
    // All pairs exchange the same amount.
    if (operation == Collective::all_to_all) count -= count % world;
    asked.workload = {.operation = operation,
                      .world = world,
                      .count = count,
                      .largest = schedule::Chunks::even(count, world).largest(),
                      .element_bytes = question.element_bytes,
                      .commutative = !question.ordered};
    asked.profile = std::move(profile);
    asked.root = question.root;
    return asked;
}

Result<std::vector<schedule::Schedule>> all_schedules(const AskedCollective& collective,
                                                      const schedule::Choice& choice) {
    schedule::Request request;
    request.operation = collective.workload.operation;
    request.world = collective.workload.world;
    request.root = collective.root;
    request.segment = choice.segment;
    request.chunks = schedule::Chunks::even(collective.workload.count, collective.workload.world);
    request.receives = request.chunks;
    request.links = collective.profile.links;
    std::vector<schedule::Schedule> all;
    all.reserve(collective.workload.world);
    for (request.rank = 0; request.rank < request.world; ++request.rank) {
        all.push_back(choice.algorithm->build(request));
        // All ranks have about as many steps as this one.
        if (all.back().steps.size() * request.world > kMostSteps) {
            return Error(Errc::limit_exceeded,
                         fmt::format("{} has more than {} steps in a world of {}; choose a smaller "
                                     "world or another algorithm",
                                     choice.algorithm->name, kMostSteps, request.world));
        }
    }
    return all;
}

Result<double> parse_rate(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, double>, 10> kUnits{{{"Tbps", 1e12 / 8},
                                                                          {"Gbps", 1e9 / 8},
                                                                          {"Mbps", 1e6 / 8},
                                                                          {"Kbps", 1e3 / 8},
                                                                          {"bps", 1.0 / 8},
                                                                          {"TB/s", 1e12},
                                                                          {"GB/s", 1e9},
                                                                          {"MB/s", 1e6},
                                                                          {"KB/s", 1e3},
                                                                          {"B/s", 1}}};
    for (const auto& [unit, scale] : kUnits) {
        if (!text.ends_with(unit)) continue;
        const auto number = parse_real(text.substr(0, text.size() - unit.size()));
        if (number && *number > 0) return *number * scale;
        break;
    }
    return not_allowed("rate", text, "a number above 0 with bps, Mbps, Gbps, MB/s, GB/s, ...");
}

std::string as_time(double seconds) {
    if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
    if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
    return fmt::format("{:.2f} s", seconds);
}

int say(const Result<std::string>& answer) {
    if (!answer) {
        fmt::print(stderr, "nexar: {}\n", answer.error().what());
        return kExitFailure;
    }
    fmt::print("{}", *answer);
    return kExitOk;
}

}  // namespace nexar
