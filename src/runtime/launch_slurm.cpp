#include "runtime/launch_slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/try.hpp"
#include "runtime/node_list.hpp"
#include "wire/limits.hpp"

namespace nexar {

namespace {

/// Finds the address of a node in `node1:10.0.0.1:host1,node2:[fd00::2]:host2`; nullopt if the text
/// does not list the node.
std::optional<std::string> alias_address(std::string_view aliases, std::string_view node) {
    while (!aliases.empty()) {
        std::string_view one = aliases.substr(0, aliases.find(','));
        aliases.remove_prefix(std::min(aliases.size(), one.size() + 1));
        if (!one.starts_with(node) || !one.substr(node.size()).starts_with(':')) continue;
        one.remove_prefix(node.size() + 1);
        const bool in_brackets = one.starts_with('[');
        if (in_brackets) one.remove_prefix(1);
        const std::string_view address = one.substr(0, one.find(in_brackets ? ']' : ':'));
        if (is_host(address)) return std::string(address);
    }
    return std::nullopt;
}

/// The addresses that Slurm provides for `host`, the first node of the step.
std::vector<std::string> addresses_of(const std::string& host, LaunchVariables& variables) {
    std::vector<std::string> addresses;
    if (const std::string* aliases = variables.find("SLURM_NODE_ALIASES")) {
        if (auto address = alias_address(*aliases, host)) {
            addresses.push_back(std::move(*address));
        }
    }
    const std::string* const environment = variables.find("ENVIRONMENT");
    const std::string* const srun = variables.find("SLURM_LAUNCH_NODE_IPADDR");
    const std::string* const list = variables.find("SLURM_JOB_NODELIST");
    if (environment == nullptr || *environment != "BATCH" || srun == nullptr || list == nullptr) {
        return addresses;
    }
    const auto job = parse_node_list(*list);
    if (job && job->first == host && is_host(*srun)) addresses.push_back(*srun);
    return addresses;
}

}  // namespace

Result<void> read_slurm_hosts(LaunchVariables& variables, LaunchClaim& claim) {
    NEXAR_TRY_VALUE(node, variables.number("SLURM_NODEID", 0, wire::kMaxWorldSize - 1));
    const std::string* const tasks = variables.find("SLURM_STEP_TASKS_PER_NODE");
    if (tasks != nullptr && node) {
        const auto here = tasks_on_node(*tasks, *node);
        if (!here) {
            return bad_launch(fmt::format("SLURM_STEP_TASKS_PER_NODE: {}", here.error().cause()));
        }
        claim.local_size = *here;
    }
    for (const std::string_view name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST"}) {
        const std::string* const list = variables.find(name);
        if (list == nullptr) continue;
        const auto nodes = parse_node_list(*list);
        if (!nodes) return bad_launch(fmt::format("{}: {}", name, nodes.error().cause()));
        if (nodes->count == 1) {
            if (!claim.local_size) claim.local_size = claim.world;
            // The node list of the job does not help if the step has tasks on other hosts.
            if (claim.local_size == claim.world) return {};
        }
        // Unless tasks are distributed in blocks, rank 0 may not be on the first node.
        if (claim.rank == 0U && node && *node != 0) return {};
        claim.host = nodes->first;
        claim.host_addresses = addresses_of(nodes->first, variables);
        return {};
    }
    return {};
}

}  // namespace nexar
