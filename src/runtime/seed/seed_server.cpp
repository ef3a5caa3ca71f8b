// A seed's life: how it starts from its files, runs its turns, and ends.

#include "runtime/seed/seed_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/try.hpp"
#include "runtime/join/addresses.hpp"
#include "runtime/seed/stored_vote.hpp"
#include "runtime/topology_limit.hpp"
#include "security/digest.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

constexpr std::chrono::hours kLifetime{24};
/// Short, so that the seed notices dead members soon.
constexpr Duration kIdleTimeout = std::chrono::seconds(15);

/// Derived from the CA's key, so that a restarted seed can answer peers of the previous process,
/// which then notice the restart at once.
Result<Secret> restart_secret(const security::ClusterCa& ca) {
    constexpr std::string_view kLabel = "nexar stateless resets of a seed 1";
    NEXAR_TRY_VALUE(pem, ca.key().to_pem());
    return pem.reveal([&](std::span<const std::byte> bytes) {
        std::vector<std::byte> text(bytes.begin(), bytes.end());
        for (const char c : kLabel) text.push_back(static_cast<std::byte>(c));
        Secret secret(security::sha256(text));
        wipe(text);
        return secret;
    });
}

wire::StoredSeed new_state(security::WallTime now, const NodeId& id) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
    return {.seed = id.bytes(), .incarnation = static_cast<std::uint64_t>(seconds.count())};
}

/// The state of a seed that continues from a copy: votes that it cast after the copy was made are
/// not in it, so it becomes another voter. `incarnation` is above all earlier ones.
wire::StoredSeed restored(wire::StoredSeed state, std::uint64_t incarnation) {
    NEXAR_LOG_WARNING(
        "the state of this seed was restored from a copy; it votes on changes of the "
        "members when they have accepted it again");
    state.incarnation = std::max(state.incarnation + 1, incarnation);
    // Nor does it know of clusters that formed since.
    state.least_epoch = Epoch(std::max(state.epoch.value() + kForgottenEpochs, incarnation));
    clear_vote(state);
    return state;
}

}  // namespace

SeedServer::SeedServer(Config config, HostServices services)
    : config_(std::move(config)), services_(std::move(services)) {}

Result<std::unique_ptr<SeedServer>> SeedServer::open(const SeedOptions& options, Config config,
                                                     HostServices services, TimePoint now) {
    std::unique_ptr<SeedServer> server(new SeedServer(std::move(config), std::move(services)));
    if (!options.job_secret.empty()) {
        NEXAR_TRY_VALUE(secret, security::JobSecret::from_text(options.job_secret));
        server->job_secret_ = std::move(secret);
    }
    NEXAR_TRY(server->open_state(options, now));
    return server;
}

Result<void> SeedServer::open_state(const SeedOptions& options, TimePoint now) {
    if (options.state_dir.empty() && (options.second || !options.ca_dir.empty())) {
        return Error(Errc::invalid_argument,
                     "a second seed needs a state directory, where it keeps its vote");
    }
    for (const std::string& other : options.other_seeds) {
        NEXAR_TRY(security::HostPort::parse(other));
    }
    const security::WallTime wall = services_.wall_clock();
    NEXAR_TRY_VALUE(id, services_.new_node_id());
    wire::StoredSeed state = new_state(wall, id);
    if (options.state_dir.empty()) {
        NEXAR_TRY_VALUE(cluster, services_.new_cluster_id());
        NEXAR_TRY_VALUE(key, services_.new_key());
        NEXAR_TRY_VALUE(ca, security::ClusterCa::create(cluster, std::move(key), wall));
        ca_ = std::make_unique<security::ClusterCa>(std::move(ca));
    } else {
        NEXAR_TRY_VALUE(directory, security::StateDirectory::open(options.state_dir));
        NEXAR_TRY_VALUE(lock, directory.lock_for_seed());
        directory.sweep();
        const bool had_ca = directory.existing_ca().has_value();
        if (!options.ca_dir.empty()) NEXAR_TRY(directory.copy_ca(options.ca_dir));
        NEXAR_TRY_VALUE(ca, directory.ca(wall, services_.new_cluster_id));
        NEXAR_TRY_VALUE(kept, directory.seed());
        NEXAR_TRY_VALUE(origin, directory.origin());
        if (kept) {
            const bool copied = kept->origin != wire::Origin{} && kept->origin != origin;
            state = options.restored || copied ? restored(*kept, state.incarnation) : *kept;
        } else if (had_ca) {
            // The state was lost: nobody knows how many views there were.
            state.least_epoch = Epoch(state.incarnation);
        }
        state.origin = origin;
        state_ = directory;
        lock_ = std::move(lock);
        ca_ = std::make_unique<security::ClusterCa>(std::move(ca));
    }
    if (!state.view.empty()) {
        vote_.view = wire::from_wire(state.view.front());
        vote_.promised = {.round = state.promised_round, .proposer = state.promised_by};
        vote_.accepted = {.round = state.accepted_round, .proposer = state.accepted_by};
        if (!state.accepted.empty()) vote_.accepted_view = wire::from_wire(state.accepted.front());
    }
    other_seeds_ = options.other_seeds;
    DeskOptions desk{.world = static_cast<std::uint32_t>(options.world), .second = options.second};
    if (options.max_world > 0) desk.max_world = static_cast<std::uint32_t>(options.max_world);
    const auto wanted = static_cast<std::size_t>(std::max(options.world, options.max_world));
    NEXAR_TRY_VALUE(topology, topology_for(config_.text("topology"), wanted));
    const std::size_t most = most_members(topology);
    desk.max_world = static_cast<std::uint32_t>(std::min<std::size_t>(desk.max_world, most));
    desk_ = std::make_unique<SeedDesk>(
        state, desk, [this] { return services_.new_node_id().value(); }, now);
    if (desk_->formed()) begin_membership(now);
    return {};
}

Result<link::CarrierOptions> SeedServer::carrier_options() const {
    link::CarrierOptions options;
    NEXAR_TRY_VALUE(credentials, new_credentials());
    NEXAR_TRY_VALUE(secret, restart_secret(*ca_));
    options.credentials = std::move(credentials);
    options.restart_secret = std::move(secret);
    options.accepts_joiners = true;
    options.settings.idle_timeout = kIdleTimeout;
    options.settings.keep_alive = kIdleTimeout / 3;
    options.wall_clock = services_.wall_clock;
    options.random = services_.link_random;
    return options;
}

Result<void> SeedServer::serve(port::Carrier& carrier, TimePoint now) {
    carrier_ = &carrier;
    renew_at_ = now + kLifetime / 2;
    if (!state_) return {};
    NEXAR_TRY(state_->keep(to_store()));
    NEXAR_TRY(state_->keep_addresses(seeds()));
    peers_due_ = now;  // the file of the previous seed is out of date
    return {};
}

Result<std::shared_ptr<const security::Credentials>> SeedServer::new_credentials() const {
    NEXAR_TRY_VALUE(key, services_.new_key());
    const Identity identity{.cluster = ca_->cluster(),
                            .node = NodeId(desk_->state().seed),
                            .incarnation = Incarnation(desk_->state().incarnation)};
    NEXAR_TRY_VALUE(certificate, ca_->issue({.public_key = key.public_key(),
                                             .identity = identity,
                                             .lifetime = kLifetime,
                                             .seed = true},
                                            services_.wall_clock()));
    return security::Credentials::create_seed(std::move(key), certificate, ca_->certificate());
}

void SeedServer::renew(TimePoint now) {
    if (now < renew_at_) return;
    renew_at_ = now + kLifetime / 8;
    if (auto credentials = new_credentials()) {
        carrier_->set_credentials(std::move(*credentials));
        renew_at_ = now + kLifetime / 2;
    } else {
        NEXAR_LOG_ERROR("the seed's certificate cannot be renewed: {}",
                        credentials.error().cause());
    }
}

std::vector<std::string> SeedServer::addresses() const {
    std::vector<std::string> texts;
    for (const Address& address : reachable_addresses(carrier_->local())) {
        texts.push_back(address.text());
    }
    return texts;
}

/// The seeds that a join string names: this one and the others.
std::vector<std::string> SeedServer::seeds() const {
    std::vector<std::string> all = addresses();
    const std::size_t others =
        std::min(other_seeds_.size(), security::JoinString::kMaxSeeds - std::size_t{1});
    all.resize(std::min(all.size(), security::JoinString::kMaxSeeds - others));
    all.insert(all.end(), other_seeds_.begin(),
               other_seeds_.begin() + static_cast<std::ptrdiff_t>(others));
    return all;
}

Result<std::string> SeedServer::create_token(const TokenOptions& options) {
    const security::TokenTerms terms{.uses = static_cast<std::uint32_t>(std::max(options.uses, 0)),
                                     .life = options.ttl};
    security::NewToken made;
    const auto create = [&](security::TokenTable& table) -> Result<void> {
        NEXAR_TRY_VALUE(token, table.create(terms, services_.wall_clock()));
        made = std::move(token);
        return {};
    };
    NEXAR_TRY(state_ ? state_->change_tokens(create) : create(own_tokens_));
    security::JoinString text;
    text.token = made.token.id;
    text.secret = std::move(made.secret);
    text.ca = ca_->key().public_key_hash();
    text.seeds = seeds();
    return text.text();
}

Result<security::TokenTable> SeedServer::tokens() const {
    if (state_) return state_->tokens();
    return own_tokens_;
}

bool SeedServer::give_up_on(Rank rank, const std::string& how, TimePoint now) {
    if (!desk_->give_up_on(rank, how)) return false;
    const std::optional<Error> why = desk_->given_up();
    for (auto& [id, visitor] : visitors_) {
        if (!why || visitor.lane->closed()) continue;
        visitor.lane->send(wire::report_of(*why, desk_->state().epoch));
        visitor.lane->close(why->cause());
    }
    carrier_->flush(now);
    return true;
}

bool SeedServer::turn(TimePoint now) {
    now_ = now;
    const bool arrived = carrier_->on_ready(now);
    carrier_->flush(now);
    take_events(now);
    expire(now);
    renew(now);
    follow_membership(now);
    answer_all();
    reserve_for_members();
    tell_members();
    keep_peers(now);
    carrier_->flush(now);
    return arrived;
}

std::optional<TimePoint> SeedServer::next_deadline() const {
    std::optional<TimePoint> due = carrier_->next_deadline();
    const auto at = [&](TimePoint time) { due = due ? std::min(*due, time) : time; };
    for (const auto& [id, visitor] : visitors_) {
        if (!visitor.lane->closed()) at(visitor.deadline);
    }
    if (const auto desk = desk_->next_deadline()) at(*desk);
    if (membership_) {
        if (const auto vote = membership_->next_deadline()) at(*vote);
    }
    if (peers_due_) at(*peers_due_);
    if (retry_writing_at_) at(*retry_writing_at_);
    at(renew_at_);
    return due;
}

void SeedServer::close(TimePoint now) {
    closing_ = true;
    for (auto& [id, visitor] : visitors_) visitor.lane->close("the seed was closed");
    carrier_->flush(now);
}

}  // namespace nexar::runtime
