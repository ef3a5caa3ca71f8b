// The bodies of `nexar members` and `nexar members forget`.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/try.hpp"
#include "cluster.hpp"
#include "command.hpp"
#include "runtime/seed/forget_members.hpp"
#include "security/state_directory.hpp"
#include "text_table.hpp"
#include "wire/view.hpp"

namespace nexar {

namespace {

using Json = nlohmann::ordered_json;

int failed(std::string_view command, const Error& error) {
    fmt::print(stderr, "nexar {}: {}\n", command, error.what());
    return kExitFailure;
}

Result<security::StateDirectory> state_at(const std::string& given) {
    if (!given.empty()) return security::StateDirectory::open(given);
    NEXAR_TRY_VALUE(path, security::default_state_directory());
    return security::StateDirectory::open(path);
}

Result<wire::StoredSeed> stored_seed(const security::StateDirectory& state) {
    NEXAR_TRY_VALUE(seed, state.seed());
    if (seed) return std::move(*seed);
    return Error(Errc::bad_config,
                 fmt::format("{} contains no list of members; start `nexar seed` with this state "
                             "directory first",
                             state.path()));
}

/// The nodes that are connected to the running seed.
std::set<std::string> connected_nodes(const security::StateDirectory& state) {
    std::set<std::string> nodes;
    const auto text = state.peers();
    if (!text) return nodes;
    const auto all = nlohmann::json::parse(text->value_or(""), nullptr, false);
    if (!all.is_object() || !all.contains("members")) return nodes;
    for (const auto& member : all["members"]) {
        if (member.value("connected", false)) nodes.insert(member.value("node", ""));
    }
    return nodes;
}

std::string addresses_of(const wire::ViewMember& member) {
    std::string all;
    for (const auto& address : member.addresses) all += (all.empty() ? "" : " ") + address.text;
    return all;
}

/// What the seed knows, ready to be shown.
struct Shown {
    wire::StoredSeed seed;
    bool running = false;
    std::set<std::string> connected;

    bool formed() const { return !seed.view.empty(); }
    const std::vector<wire::ViewMember>& members() const {
        return formed() ? seed.view.front().members : seed.members;
    }
    bool connects(const wire::ViewMember& one) const {
        return running && connected.contains(NodeId(one.node).to_hex());
    }
    bool is_witness() const {
        return formed() && seed.view.front().witness == seed.seed &&
               seed.view.front().witness_incarnation == seed.incarnation;
    }
    std::string witness() const {
        if (!formed() || seed.view.front().witness == wire::Id{}) return "none";
        return is_witness() ? "this seed" : NodeId(seed.view.front().witness).to_hex();
    }
    std::string headline() const {
        if (!formed()) {
            return fmt::format("no cluster has formed; {} of {} ranks joined; last epoch {}",
                               seed.members.size(), seed.world_size, seed.epoch.value());
        }
        return fmt::format("epoch {}; {} member{}; witness: {}; next rank {}", seed.epoch.value(),
                           members().size(), members().size() == 1 ? "" : "s", witness(),
                           seed.view.front().next_rank.value());
    }
};

std::string members_table(const Shown& shown) {
    std::vector<std::vector<std::string>> cells = {
        {"rank", "connected", "host", "addresses", "node"}};
    const auto add = [&](const wire::ViewMember& one, const std::string& rank) {
        cells.push_back({rank, shown.running ? (shown.connects(one) ? "yes" : "no") : "unknown",
                         one.host, addresses_of(one), NodeId(one.node).to_hex()});
    };
    for (const auto& one : shown.members()) add(one, fmt::to_string(one.rank.value()));
    if (shown.formed()) {
        for (const auto& one : shown.seed.members) add(one, "joining");
    }
    return fmt::format("{}\n\n{}", shown.headline(), aligned(cells));
}

std::string members_json(const Shown& shown) {
    const auto entry = [&](const wire::ViewMember& one) {
        Json addresses = Json::array();
        for (const auto& address : one.addresses) addresses.push_back(address.text);
        Json made = {{"rank", one.rank.value()},
                     {"node", NodeId(one.node).to_hex()},
                     {"incarnation", one.incarnation},
                     {"host", one.host},
                     {"addresses", std::move(addresses)}};
        made["connected"] = shown.running ? Json(shown.connects(one)) : Json(nullptr);
        return made;
    };
    Json all = {{"formed", shown.formed()},
                {"epoch", shown.seed.epoch.value()},
                {"seed", NodeId(shown.seed.seed).to_hex()},
                {"seed_running", shown.running},
                {"witness", nullptr},
                {"next_rank", shown.formed() ? shown.seed.view.front().next_rank.value() : 0}};
    if (shown.formed() && shown.seed.view.front().witness != wire::Id{}) {
        all["witness"] = NodeId(shown.seed.view.front().witness).to_hex();
    }
    all["members"] = Json::array();
    for (const auto& one : shown.members()) all["members"].push_back(entry(one));
    all["joining"] = Json::array();
    if (shown.formed()) {
        for (const auto& one : shown.seed.members) {
            Json joiner = entry(one);
            joiner.erase("rank");  // the members have not assigned one yet
            all["joining"].push_back(std::move(joiner));
        }
    }
    return all.dump(2) + "\n";
}

Result<std::string> members_text(const std::string& directory, bool json) {
    NEXAR_TRY_VALUE(state, state_at(directory));
    NEXAR_TRY_VALUE(seed, stored_seed(state));
    const Shown shown{.seed = std::move(seed),
                      .running = state.has_running_seed(),
                      .connected = connected_nodes(state)};
    if (!shown.running) {
        fmt::print(stderr,
                   "nexar members: no seed is running on {}; showing what the last one recorded\n",
                   state.path());
    }
    return json ? members_json(shown) : members_table(shown);
}

Result<std::string> forget(const std::string& directory, const std::vector<Rank>& ranks) {
    NEXAR_TRY_VALUE(state, state_at(directory));
    if (state.has_running_seed()) {
        return Error(Errc::bad_config,
                     fmt::format("the seed is running on {}; stop it first, and start it again "
                                 "afterwards",
                                 state.path()));
    }
    const auto lock = state.lock_for_seed();  // until this function returns
    if (!lock) return lock.error();
    NEXAR_TRY_VALUE(seed, stored_seed(state));
    NEXAR_TRY_VALUE(next, runtime::forget_members(seed, ranks));
    NEXAR_TRY(state.keep(next));
    if (next.view.empty()) {
        return fmt::format(
            "all members are forgotten; start the seed, and a new cluster can form "
            "with epoch {}\n",
            next.epoch.value() + 1);
    }
    return fmt::format("{} member{} in epoch {}; start the seed to let them continue\n",
                       next.view.front().members.size(),
                       next.view.front().members.size() == 1 ? " is left" : "s are left",
                       next.epoch.value());
}

}  // namespace

int show_members(const std::string& state_directory, bool json) {
    const auto text = members_text(state_directory, json);
    if (!text) return failed("members", text.error());
    fmt::print("{}", *text);
    return kExitOk;
}

int forget_members(const std::string& state_directory, const std::vector<std::uint32_t>& ranks) {
    std::vector<Rank> wanted;
    wanted.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) wanted.emplace_back(rank);
    const auto text = forget(state_directory, wanted);
    if (!text) return failed("members forget", text.error());
    fmt::print("{}", *text);
    return kExitOk;
}

}  // namespace nexar
