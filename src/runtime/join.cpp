#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nexar/join.hpp>
#include <utility>

#include "base/address_order.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/settings.hpp"
#include "base/try.hpp"
#include "runtime/config_sources.hpp"
#include "runtime/join/addresses.hpp"
#include "runtime/join_variable.hpp"
#include "runtime/launch.hpp"
#include "runtime/node_body.hpp"
#include "runtime/own_cluster.hpp"
#include "runtime/progress_options.hpp"
#include "runtime/seed_body.hpp"
#include "security/private_file.hpp"

namespace nexar {

namespace {

constexpr std::size_t kMaxSecretFileBytes = std::size_t{64} * 1024;

/// A secret from a variable, or from the file that another variable names.
Result<std::optional<std::string>> secret_variable(std::span<const NamedValue> environment,
                                                   std::string_view name) {
    const auto value = [&](const std::string& wanted) -> const std::string* {
        const auto found = std::ranges::find(environment, wanted, &NamedValue::name);
        return found == environment.end() || found->value.empty() ? nullptr : &found->value;
    };
    if (const std::string* text = value(std::string(name))) return std::optional(*text);
    const std::string* path = value(fmt::format("{}_FILE", name));
    if (path == nullptr) return std::optional<std::string>{};
    NEXAR_TRY_VALUE(content, security::read_private_file(*path, kMaxSecretFileBytes));
    if (!content) {
        return Error(Errc::bad_config,
                     fmt::format("{}_FILE names {}, which does not exist", name, *path));
    }
    std::string text = content->reveal([](std::span<const std::byte> bytes) {
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return std::optional(std::move(text));
}

Result<std::vector<Address>> resolve_all(const std::vector<std::string>& seeds) {
    std::vector<Address> addresses;
    std::optional<Error> problem;
    for (const std::string& seed : seeds) {
        auto found = runtime::resolve(seed);
        if (!found) {
            problem = found.error();
            continue;
        }
        for (const Address& address : *found) {
            if (std::ranges::find(addresses, address) == addresses.end()) {
                addresses.push_back(address);
            }
        }
    }
    if (addresses.empty() && problem) return *problem;
    return addresses;
}

constexpr std::string_view kHowToJoin =
    "pass the join string of `nexar token create` in JoinOptions::join_string, NEXAR_JOIN "
    "or NEXAR_JOIN_FILE, or start the program with `nexar run -n 4 -- ./program`, torchrun, "
    "mpirun, srun or as an indexed job of Kubernetes";

/// The reason, if any, why a process without a launcher must not be a world of one.
std::optional<Error> must_not_be_alone(const JoinOptions& options, const Config& config,
                                       std::span<const NamedValue> launch_environment) {
    const auto refused = [](std::string_view why) {
        return Error(Errc::bad_config, fmt::format("nothing says which cluster to join, and {}; {}",
                                                   why, kHowToJoin));
    };
    if (config.boolean("require_cluster")) {
        return refused(fmt::format("the setting require_cluster ({}) forbids a world of one",
                                   to_text(config.entry("require_cluster").origin)));
    }
    for (const std::string_view name : {"NEXAR_SEED_HOST", "NEXAR_SEED_PORT"}) {
        if (find_value(launch_environment, name) == nullptr) continue;
        return refused(
            fmt::format("{} is set, which is meant for ranks that a launcher started", name));
    }
    if (const int rank = options.rank.value_or(0); rank > 0) {
        return refused(
            fmt::format("rank {} was requested, but a world of one has only rank 0", rank));
    }
    return std::nullopt;
}

/// How this process joins.
struct Plan {
    bool alone = false;  // a world of one; the other fields are not set
    runtime::JoinTerms terms{};
    std::shared_ptr<detail::SeedBody> seed{};  // if this process hosts it
};

std::string host_and_port(const std::string& host, std::uint16_t port) {
    const bool v6 = host.find(':') != std::string::npos;
    return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

/// The addresses at which the other ranks reach the seed that rank 0 hosts.
Result<std::vector<Address>> find_seed(const Launch& launch, const SeedPlace& place) {
    const auto& [host, port] = place;
    auto found = runtime::resolve(host_and_port(host, port));
    if (found) return found;
    for (const std::string& address : launch.seed_addresses) {
        auto other = runtime::resolve(host_and_port(address, port));
        if (!other) continue;
        NEXAR_LOG_WARNING(
            "this host cannot resolve the name {}; trying the address {} that {} "
            "gives for rank 0",
            in_quotes(host), address, name(launch.launcher));
        return other;
    }
    return Error(Errc::bad_config,
                 fmt::format("rank 0 runs on the host {}, but this host cannot resolve that name "
                             "({}); set NEXAR_SEED_HOST on all ranks to an address of that host: "
                             "NEXAR_SEED_HOST=10.0.0.1",
                             in_quotes(host), found.error().cause()));
}

/// The address of the seed, if the launcher's ranks meet on a loopback address.
std::optional<Address> given_loopback(const SeedPlace& place) {
    const auto given = Address::parse(host_and_port(place.host, place.port));
    if (!given || !given->is_loopback()) return std::nullopt;
    return *given;
}

/// The address at which rank 0 reaches its own seed.
Address own_seed_address(const SeedPlace& place) {
    return given_loopback(place).value_or(
        Address::parse(fmt::format("127.0.0.1:{}", place.port)).value());
}

/// The seed of the job, in this process.
Result<std::shared_ptr<detail::SeedBody>> host_seed(const SeedPlace& place, std::uint32_t world,
                                                    const std::string& job_secret) {
    const std::uint16_t port = place.port;
    const auto loopback = given_loopback(place);
    const bool local = loopback.has_value();
    SeedOptions options;
    options.listen = loopback ? loopback->text() : fmt::format("[::]:{}", port);
    options.world = static_cast<int>(world);
    options.job_secret = job_secret;
    const auto services = runtime::HostServices::of_this_machine();
    auto seed = detail::SeedBody::open(options, services);
    if (!seed && !local) {
        options.listen = fmt::format("0.0.0.0:{}", port);  // a host without IPv6
        seed = detail::SeedBody::open(options, services);
    }
    if (seed) return seed;
    return Error(
        seed.error().code(),
        fmt::format("rank 0 cannot host the seed of the job: {}; if another program or job "
                    "uses UDP port {}, set NEXAR_SEED_PORT on all ranks to a free one",
                    seed.error().cause(), port));
}

Result<Plan> plan_with_launch(const Launch& launch, std::span<const NamedValue> environment) {
    NEXAR_TRY_VALUE(text, secret_variable(environment, "NEXAR_JOB_SECRET"));
    if (!text) {
        return Error(
            Errc::bad_config,
            fmt::format("the job was started by {}, but its ranks have no shared secret with "
                        "which to recognise each other; {}",
                        name(launch.launcher), security::kMakeJobSecret));
    }
    // Two jobs of one user may have the same secret; their ranks must not join each other.
    if (!launch.job.empty()) *text += fmt::format(" {}", launch.job);
    NEXAR_TRY_VALUE(secret, security::JobSecret::from_text(*text));
    Plan plan;
    plan.terms.job_secret = std::move(secret);
    if (!launch.seed) return Error(Errc::bad_config, "the launcher does not say where rank 0 runs");
    if (!launch.hosts_seed()) {
        NEXAR_TRY_VALUE(seeds, find_seed(launch, *launch.seed));
        plan.terms.seeds = std::move(seeds);
        return plan;
    }
    NEXAR_TRY_VALUE(seed, host_seed(*launch.seed, launch.world, *text));
    plan.seed = std::move(seed);
    plan.terms.seeds = {own_seed_address(*launch.seed)};
    return plan;
}

/// The join string from the options or the environment.
Result<std::optional<std::string>> find_join_string(const JoinOptions& options,
                                                    std::span<const NamedValue> environment) {
    if (!options.join_string.empty()) return std::optional(options.join_string);
    if (auto taken = take_join_variable()) return taken;
    return secret_variable(environment, "NEXAR_JOIN");
}

/// The plan of a process without a join string.
Result<Plan> plan_without_join_string(const JoinOptions& options, const Config& config,
                                      const std::optional<Launch>& launch,
                                      std::span<const NamedValue> launch_environment) {
    if (launch && launch->world == 1 && !config.boolean("require_cluster")) {
        NEXAR_LOG_INFO("{} started one task: this process is a world of one",
                       name(launch->launcher));
        return Plan{.alone = true};
    }
    if (launch && launch->seed) return plan_with_launch(*launch, read_environment());
    if (auto refused = must_not_be_alone(options, config, launch_environment)) return *refused;
    NEXAR_LOG_INFO(
        "no launcher started this process, so it is a world of one; start several ranks with "
        "`nexar run -n 4 -- ./program`, or give them NEXAR_JOIN");
    return Plan{.alone = true};
}

Result<Plan> make_plan(const JoinOptions& options, const Config& config) {
    if (const int rank = options.rank.value_or(0); rank < 0) {
        return Error(Errc::invalid_argument,
                     fmt::format("rank {} was requested; ranks start at 0", rank));
    }
    const std::vector<NamedValue> launch_environment = read_launch_environment();
    std::optional<Launch> launch;
    if (options.join_string.empty()) {
        NEXAR_TRY_VALUE(detected, detect_launch(launch_environment));
        launch = std::move(detected);
        if (launch) NEXAR_LOG_INFO("{}", to_text(*launch));
    }
    NEXAR_TRY_VALUE(text, find_join_string(options, read_environment()));
    Plan plan;
    if (text) {
        NEXAR_TRY_VALUE(join, security::JoinString::parse(*text));
        NEXAR_TRY_VALUE(seeds, resolve_all(join.seeds));
        plan.terms.seeds = std::move(seeds);
        plan.terms.join = std::move(join);
    } else {
        NEXAR_TRY_VALUE(found,
                        plan_without_join_string(options, config, launch, launch_environment));
        plan = std::move(found);
    }
    if (options.rank) {
        plan.terms.wanted_rank = Rank(static_cast<std::uint32_t>(*options.rank));
    } else if (launch) {
        plan.terms.wanted_rank = launch->rank;
    }
    return plan;
}

/// Listens on the first of these addresses that works or, if the setting `listen` is set, only on
/// that.
template <class Open>
Result<std::shared_ptr<detail::NodeBody>> open_at(const JoinOptions& options, const Config& config,
                                                  std::array<std::string_view, 2> places,
                                                  const Open& open) {
    const auto try_at = [&](std::string_view where) -> Result<std::shared_ptr<detail::NodeBody>> {
        NEXAR_TRY_VALUE(listen, Address::parse(where));
        return open(detail::NodeBody::Setup{.listen = listen,
                                            .options = options.node,
                                            .link = link::link_settings(config),
                                            .config = config});
    };
    const std::string_view listen = config.text("listen");
    if (!listen.empty()) return try_at(listen);
    auto first = try_at(places[0]);
    return first ? std::move(first) : try_at(places[1]);  // a host without that IP version
}

Result<std::shared_ptr<detail::NodeBody>> open_node(const JoinOptions& options,
                                                    const Config& config) {
    NEXAR_TRY_VALUE(loop, runtime::make_loop(options.node));
    return open_at(options, config, {"[::]:0", "0.0.0.0:0"},
                   [&](const auto& setup) { return detail::NodeBody::open(loop, setup); });
}

/// A world of one. No other process needs to reach it, so it listens on loopback unless the setting
/// `listen` says otherwise.
Result<Node> join_alone(const JoinOptions& options, const Config& config, TimePoint deadline) {
    NEXAR_TRY_VALUE(cluster, detail::OwnCluster::make(runtime::HostServices::of_this_machine()));
    NEXAR_TRY_VALUE(loop, runtime::make_loop(options.node));
    NEXAR_TRY_VALUE(body, open_at(options, config, {"127.0.0.1:0", "[::1]:0"},
                                  [&](const auto& setup) { return cluster.open(loop, setup); }));
    Node node(body);
    body->form(cluster.view());
    NEXAR_TRY(body->wait_formed(deadline));
    return node;
}

Result<Node> join_with(const JoinOptions& given, std::vector<ConfigFlag> flags) {
    std::vector<NamedValue> code;
    code.reserve(given.settings.size() + 3);
    for (const auto& [name, value] : given.settings) code.push_back({name, value});
    if (given.node.unprotected) code.push_back({"protection", "none"});
    for (NamedValue& one : runtime::progress_settings(given.node)) code.push_back(std::move(one));
    NEXAR_TRY_VALUE(loaded, load_config(std::move(code), std::move(flags)));
    const Config& config = loaded.config;
    JoinOptions options = given;
    options.node = runtime::with_progress_settings(given.node, config);
    const SteadyClock clock;
    const TimePoint deadline = clock.now() + config.duration("formation_timeout");
    NEXAR_TRY_VALUE(plan, make_plan(options, config));
    if (plan.alone) return join_alone(options, config, deadline);
    auto opened = open_node(options, config);
    if (!opened) {
        if (plan.seed) plan.seed->close();
        return opened.error();
    }
    const std::shared_ptr<detail::NodeBody>& body = *opened;
    body->accompany(plan.seed);
    Node node(body);
    plan.terms.addresses = runtime::reachable_addresses(body->address());
    plan.terms.seeds = best_first(plan.terms.seeds, plan.terms.addresses);
    plan.terms.host = runtime::host_name();
    NEXAR_TRY(body->join(std::move(plan.terms)));
    NEXAR_TRY(body->wait_formed(deadline));
    body->follow_recovery_setting(node);
    return node;
}

}  // namespace

Node join(const JoinOptions& options) {
    return join_with(options, {}).value();
}

Node join(int& argc, char** argv, const JoinOptions& options) {
    return join_with(options, take_flags(argc, argv)).value();
}

}  // namespace nexar
