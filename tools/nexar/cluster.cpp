#include "cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <nexar/seed.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/quantity.hpp"
#include "base/try.hpp"
#include "command.hpp"
#include "security/state_directory.hpp"
#include "text_table.hpp"

namespace nexar {

namespace {

using security::StateDirectory;

int report(std::string_view command, const Error& error) {
    fmt::print(stderr, "nexar {}: {}\n", command, error.what());
    return kExitFailure;
}

Result<StateDirectory> open_state(const std::string& given) {
    if (!given.empty()) return StateDirectory::open(given);
    NEXAR_TRY_VALUE(path, security::default_state_directory());
    return StateDirectory::open(path);
}

Result<std::string> join_string(const NewTokenOptions& options) {
    NEXAR_TRY_VALUE(life, parse_duration(options.life));
    NEXAR_TRY_VALUE(state, open_state(options.state_directory));
    NEXAR_TRY_VALUE(ca, state.existing_ca());
    NEXAR_TRY_VALUE(addresses, state.addresses());
    const security::TokenTerms terms{.uses = options.uses,
                                     .life = std::chrono::floor<std::chrono::seconds>(life)};
    security::NewToken made;
    NEXAR_TRY(state.change_tokens([&](security::TokenTable& table) -> Result<void> {
        NEXAR_TRY_VALUE(token, table.create(terms, std::chrono::system_clock::now()));
        made = std::move(token);
        return {};
    }));
    security::JoinString text;
    text.token = made.token.id;
    text.secret = std::move(made.secret);
    text.ca = ca.key().public_key_hash();
    text.seeds = std::move(addresses);
    if (text.seeds.size() > security::JoinString::kMaxSeeds) {
        text.seeds.resize(security::JoinString::kMaxSeeds);
    }
    return text.text();
}

/// A token and how often it was used.
struct TokenRow {
    security::Token token;
    std::uint32_t used = 0;

    std::string state(security::WallTime now) const {
        if (token.revoked) return "revoked";
        if (token.expires_at <= now) return "expired";
        return used >= token.uses ? "used up" : "valid";
    }
};

Result<std::vector<TokenRow>> token_rows(const std::string& directory) {
    NEXAR_TRY_VALUE(state, open_state(directory));
    NEXAR_TRY_VALUE(table, state.tokens());
    NEXAR_TRY_VALUE(seed, state.seed());
    std::vector<TokenRow> rows;
    for (const auto& [id, token] : table.all()) {
        TokenRow row{.token = token};
        if (seed) {
            const auto spent = std::ranges::find_if(
                seed->spent, [&](const auto& one) { return security::TokenId(one.token) == id; });
            if (spent != seed->spent.end()) row.used = spent->uses;
        }
        rows.push_back(row);
    }
    std::ranges::sort(rows, {}, [](const TokenRow& row) { return row.token.created_at; });
    return rows;
}

std::string as_table(const std::vector<TokenRow>& rows) {
    const auto now = std::chrono::system_clock::now();
    std::vector<std::vector<std::string>> cells = {{"id", "state", "used", "created", "expires"}};
    for (const TokenRow& row : rows) {
        cells.push_back({row.token.id.to_hex(), row.state(now),
                         fmt::format("{} of {}", row.used, row.token.uses),
                         security::in_words(row.token.created_at),
                         security::in_words(row.token.expires_at)});
    }
    return aligned(cells);
}

std::string as_json(const std::vector<TokenRow>& rows) {
    const auto now = std::chrono::system_clock::now();
    auto tokens = nlohmann::ordered_json::array();
    for (const TokenRow& row : rows) {
        tokens.push_back({{"id", row.token.id.to_hex()},
                          {"state", row.state(now)},
                          {"used", row.used},
                          {"uses", row.token.uses},
                          {"created", security::in_words(row.token.created_at)},
                          {"expires", security::in_words(row.token.expires_at)}});
    }
    return tokens.dump(2) + "\n";
}

/// The only token whose id begins with `begin`.
Result<security::TokenId> find_token(const security::TokenTable& table, const std::string& begin) {
    std::vector<security::TokenId> found;
    for (const auto& [id, token] : table.all()) {
        if (!begin.empty() && id.to_hex().starts_with(begin)) found.push_back(id);
    }
    if (found.size() == 1) return found.front();
    return Error(Errc::invalid_argument,
                 fmt::format("{} token has an id that begins with \"{}\"; `nexar token list` shows "
                             "all ids",
                             found.empty() ? "no" : "more than one", begin));
}

/// The address that a pair uses, or the member that relays first.
std::string route_of(const nlohmann::json& pair) {
    if (pair.at("via").is_null()) return pair.at("address").get<std::string>();
    return fmt::format("via rank {}", pair.at("via").get<std::uint32_t>());
}

std::string peers_table(const std::string& text) {
    const auto all = nlohmann::json::parse(text);
    std::string out = fmt::format("{}\n\n", all.at("status").get<std::string>());
    std::vector<std::vector<std::string>> members = {
        {"rank", "connected", "host", "addresses", "node"}};
    for (const auto& member : all.at("members")) {
        std::string addresses;
        for (const auto& address : member.at("addresses")) {
            addresses += (addresses.empty() ? "" : " ") + address.get<std::string>();
        }
        members.push_back({fmt::to_string(member.at("rank").get<std::uint32_t>()),
                           member.at("connected").get<bool>() ? "yes" : "no",
                           member.at("host").get<std::string>(), addresses,
                           member.at("node").get<std::string>()});
    }
    out += aligned(members) + "\n";
    std::vector<std::vector<std::string>> pairs = {
        {"rank", "peer", "hops", "route", "round trip", "why"}};
    for (const auto& pair : all.at("pairs")) {
        pairs.push_back({fmt::to_string(pair.at("rank").get<std::uint32_t>()),
                         fmt::to_string(pair.at("peer").get<std::uint32_t>()),
                         fmt::to_string(pair.at("hops").get<int>()), route_of(pair),
                         fmt::format("{:.0f} us", pair.at("round_trip_us").get<double>()),
                         pair.at("why").get<std::string>()});
    }
    return out + aligned(pairs);
}

Result<std::string> peers_text(const std::string& directory, bool json) {
    NEXAR_TRY_VALUE(state, open_state(directory));
    NEXAR_TRY_VALUE(text, state.peers());
    if (!text) {
        return Error(Errc::bad_config,
                     fmt::format("{} contains no list of members; start `nexar seed` with this "
                                 "state directory first",
                                 state.path()));
    }
    if (!state.has_running_seed()) {
        fmt::print(stderr,
                   "nexar peers: no seed is running on {}; showing what the last one recorded\n",
                   state.path());
    }
    if (json) return *text;
    try {
        return peers_table(*text);
    } catch (const nlohmann::json::exception&) {
        return Error(Errc::malformed, fmt::format("{}/peers.json is damaged", state.path()));
    }
}

}  // namespace

int create_token(const NewTokenOptions& options) {
    const auto text = join_string(options);
    if (!text) return report("token create", text.error());
    fmt::print("{}\n", *text);
    return kExitOk;
}

int list_tokens(const std::string& state_directory, bool json) {
    const auto rows = token_rows(state_directory);
    if (!rows) return report("token list", rows.error());
    fmt::print("{}", json ? as_json(*rows) : as_table(*rows));
    return kExitOk;
}

int revoke_token(const std::string& state_directory, const std::string& id) {
    const auto revoke = [&]() -> Result<void> {
        NEXAR_TRY_VALUE(state, open_state(state_directory));
        return state.change_tokens([&](security::TokenTable& table) -> Result<void> {
            NEXAR_TRY_VALUE(token, find_token(table, id));
            return table.revoke(token);
        });
    };
    const auto revoked = revoke();
    if (!revoked) return report("token revoke", revoked.error());
    return kExitOk;
}

int show_peers(const std::string& state_directory, bool json) {
    const auto text = peers_text(state_directory, json);
    if (!text) return report("peers", text.error());
    fmt::print("{}", *text);
    return kExitOk;
}

}  // namespace nexar
