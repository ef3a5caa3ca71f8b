// A seed's life: how it starts from its files, its turns, and how it ends.

#include "runtime/seed/seed_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/config_cluster.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "runtime/config_sources.hpp"
#include "runtime/join/addresses.hpp"
#include "security/digest.hpp"
#include "security/random_id.hpp"
#include "wire/codec.hpp"

namespace nexar::detail {

namespace {

constexpr std::chrono::hours kLifetime{24};
constexpr Duration kSeedCloseTime = std::chrono::seconds(5);
constexpr std::string_view kAnyAddress = "[::]:7400";
constexpr std::string_view kAnyV4Address = "0.0.0.0:7400";
/// Idle members are noticed, and the dead ones.
constexpr Duration kSeedIdleTimeout = std::chrono::seconds(15);

Result<std::unique_ptr<quic::UdpCarrier>> listen(const std::string& where, BufferPool& pool,
                                                 const quic::EndpointOptions& options) {
    const auto open = [&](std::string_view text) -> Result<std::unique_ptr<quic::UdpCarrier>> {
        NEXAR_TRY_VALUE(address, Address::parse(text));
        quic::EndpointOptions copy;
        copy.credentials = options.credentials;
        copy.accepts_joiners = true;
        copy.link = options.link;
        copy.secret = Secret::filled(options.secret.size(), [&](std::span<std::byte> out) {
            options.secret.reveal([&](auto bytes) { std::ranges::copy(bytes, out.begin()); });
        });
        return quic::UdpCarrier::open(address, pool, std::move(copy));
    };
    if (!where.empty()) return open(where);
    auto both = open(kAnyAddress);
    return both ? std::move(both) : open(kAnyV4Address);  // a host without IPv6
}

/// Follows from the CA's key, so that a seed that was started again answers those who knew the one
/// before, and they notice at once.
Result<Secret> reset_secret(const security::ClusterCa& ca) {
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

}  // namespace

struct SeedBody::Opened {
    std::optional<security::StateDirectory> directory{};
    Descriptor lock{};
    std::unique_ptr<const security::ClusterCa> ca{};
    wire::StoredSeed state{};
};

Result<SeedBody::Opened> SeedBody::open_state(const SeedOptions& options, security::WallTime now) {
    Opened opened;
    NEXAR_TRY_VALUE(id, security::new_node_id());
    opened.state = new_state(now, id);
    if (options.state_dir.empty()) {
        NEXAR_TRY_VALUE(cluster, security::new_cluster_id());
        NEXAR_TRY_VALUE(ca, security::ClusterCa::create(cluster, now));
        opened.ca = std::make_unique<security::ClusterCa>(std::move(ca));
        return opened;
    }
    NEXAR_TRY_VALUE(directory, security::StateDirectory::open(options.state_dir));
    NEXAR_TRY_VALUE(lock, directory.lock_for_seed());
    directory.sweep();
    NEXAR_TRY_VALUE(ca, directory.ca(now));
    NEXAR_TRY_VALUE(kept, directory.seed());
    if (kept) opened.state = *kept;
    opened.directory = directory;
    opened.lock = std::move(lock);
    opened.ca = std::make_unique<security::ClusterCa>(std::move(ca));
    return opened;
}

Result<std::shared_ptr<SeedBody>> SeedBody::open(const SeedOptions& options) {
    if (options.world < 1 || options.world > static_cast<int>(wire::kMaxViewMembers)) {
        return Error(Errc::invalid_argument,
                     fmt::format("a cluster of {} members was asked for; allowed: 1 to {}",
                                 options.world, wire::kMaxViewMembers));
    }
    std::shared_ptr<SeedBody> body(new SeedBody);
    std::vector<NamedValue> code;
    code.reserve(options.settings.size());
    for (const auto& [name, value] : options.settings) code.push_back({name, value});
    NEXAR_TRY_VALUE(loaded, load_config(std::move(code), {}));
    body->config_ = std::make_unique<Config>(std::move(loaded.config));
    if (!options.job_secret.empty()) {
        NEXAR_TRY_VALUE(secret, security::JobSecret::from_text(options.job_secret));
        body->job_secret_ = std::move(secret);
    }
    const security::WallTime now = std::chrono::system_clock::now();
    NEXAR_TRY_VALUE(opened, open_state(options, now));
    body->state_ = std::move(opened.directory);
    body->lock_ = std::move(opened.lock);
    body->ca_ = std::move(opened.ca);
    body->desk_ = std::make_unique<runtime::SeedDesk>(
        opened.state, static_cast<std::uint32_t>(options.world),
        [] { return security::new_node_id().value(); }, body->clock_.now());

    NEXAR_TRY_VALUE(credentials, body->new_credentials());
    body->renew_at_ = body->clock_.now() + kLifetime / 2;
    quic::EndpointOptions endpoint;
    endpoint.credentials = credentials;
    NEXAR_TRY_VALUE(secret, reset_secret(*body->ca_));
    endpoint.secret = std::move(secret);
    endpoint.link.idle_timeout = kSeedIdleTimeout;
    endpoint.link.keep_alive = kSeedIdleTimeout / 3;
    NEXAR_TRY_VALUE(carrier, listen(options.listen, body->pool_, endpoint));
    body->carrier_ = std::move(carrier);
    body->carriers_ = {body->carrier_.get()};
    if (const auto& state = body->state_) {
        NEXAR_TRY(state->keep(body->desk_->state()));
        NEXAR_TRY(state->keep_addresses(body->addresses()));
        body->peers_due_ = body->clock_.now();  // what the last seed wrote is no longer true
    }
    NEXAR_TRY_VALUE(loop, runtime::make_loop({}));
    body->loop_ = loop;
    NEXAR_TRY(body->loop_->progress->add(*body));
    ++body->loop_->nodes;
    return body;
}

SeedBody::~SeedBody() = default;

Result<std::shared_ptr<const security::Credentials>> SeedBody::new_credentials() const {
    NEXAR_TRY_VALUE(key, security::KeyPair::generate());
    const Identity identity{.cluster = ca_->cluster(),
                            .node = NodeId(desk_->state().seed),
                            .incarnation = Incarnation(desk_->state().incarnation)};
    NEXAR_TRY_VALUE(certificate, ca_->issue({.public_key = key.public_key(),
                                             .identity = identity,
                                             .lifetime = kLifetime,
                                             .seed = true},
                                            std::chrono::system_clock::now()));
    return security::Credentials::create_seed(std::move(key), certificate, ca_->certificate());
}

void SeedBody::renew(TimePoint now) {
    if (now < renew_at_) return;
    renew_at_ = now + kLifetime / 8;
    if (auto credentials = new_credentials()) {
        carrier_->endpoint().set_credentials(std::move(*credentials));
        renew_at_ = now + kLifetime / 2;
    } else {
        NEXAR_LOG_ERROR("the seed's certificate cannot be renewed: {}",
                        credentials.error().cause());
    }
}

std::vector<std::string> SeedBody::addresses() const {
    std::vector<std::string> texts;
    for (const Address& address : runtime::reachable_addresses(carrier_->local())) {
        texts.push_back(address.text());
    }
    return texts;
}

Result<std::string> SeedBody::create_token(const TokenOptions& options) {
    const runtime::Progress::Guard guard(*loop_->progress);
    const security::TokenTerms terms{.uses = static_cast<std::uint32_t>(std::max(options.uses, 0)),
                                     .life = options.ttl};
    const security::WallTime now = std::chrono::system_clock::now();
    security::NewToken made;
    const auto create = [&](security::TokenTable& table) -> Result<void> {
        NEXAR_TRY_VALUE(token, table.create(terms, now));
        made = std::move(token);
        return {};
    };
    NEXAR_TRY(state_ ? state_->change_tokens(create) : create(own_tokens_));
    security::JoinString text;
    text.token = made.token.id;
    text.secret = std::move(made.secret);
    text.ca = ca_->key().public_key_hash();
    text.seeds = addresses();
    if (text.seeds.size() > security::JoinString::kMaxSeeds) {
        text.seeds.resize(security::JoinString::kMaxSeeds);
    }
    return text.text();
}

Result<security::TokenTable> SeedBody::tokens() const {
    if (state_) return state_->tokens();
    return own_tokens_;
}

std::string SeedBody::status() {
    const runtime::Progress::Guard guard(*loop_->progress);
    return desk_->status();
}

bool SeedBody::formed() {
    const runtime::Progress::Guard guard(*loop_->progress);
    return desk_->formed();
}

std::optional<Error> SeedBody::aborted() {
    const runtime::Progress::Guard guard(*loop_->progress);
    return aborted_;
}

bool SeedBody::give_up_on(Rank rank, const std::string& how) {
    const runtime::Progress::Guard guard(*loop_->progress);
    if (!desk_->give_up_on(rank, how)) return false;
    const std::optional<Error> why = desk_->given_up();
    for (auto& [id, visitor] : visitors_) {
        if (!why || visitor.lane->closed()) continue;
        visitor.lane->send(wire::report_of(*why, desk_->state().epoch));
        visitor.lane->close(why->cause());
    }
    carrier_->flush(clock_.now());
    return true;
}

bool SeedBody::turn(TimePoint now) noexcept {
    const std::uint64_t before = carrier_->socket().counts().datagrams_in;
    now_ = now;
    carrier_->on_ready(now);
    carrier_->flush(now);
    take_events(now);
    expire(now);
    renew(now);
    answer_all();
    keep_places();
    tell_members(now);
    keep_peers(now);
    carrier_->flush(now);
    if (closing_ && !idle_told_ && visitors_.empty()) {
        idle_told_ = true;
        loop_->progress->complete(idle_);
    }
    return carrier_->socket().counts().datagrams_in != before;
}

std::optional<TimePoint> SeedBody::next_deadline() const noexcept {
    std::optional<TimePoint> due = carrier_->next_deadline();
    const auto at = [&](TimePoint time) { due = due ? std::min(*due, time) : time; };
    for (const auto& [id, visitor] : visitors_) {
        if (visitor.joiner && !visitor.lane->closed()) at(visitor.deadline);
    }
    if (const auto desk = desk_->next_deadline()) at(*desk);
    if (peers_due_) at(*peers_due_);
    if (retry_writing_at_) at(*retry_writing_at_);
    at(renew_at_);
    return due;
}

void SeedBody::close() {
    {
        const runtime::Progress::Guard guard(*loop_->progress);
        if (std::exchange(closing_, true)) return;
        for (auto& [id, visitor] : visitors_) visitor.lane->close("the seed was closed");
        carrier_->flush(clock_.now());
        if (visitors_.empty()) {
            idle_told_ = true;
            loop_->progress->complete(idle_);
        }
    }
    if (!loop_->progress->wait(idle_, clock_.now() + kSeedCloseTime)) {
        NEXAR_LOG_WARNING("a seed did not get rid of its links in time");
    }
    loop_->progress->remove(*this);
    if (--loop_->nodes == 0) loop_->progress->stop();
}

void SeedBody::let_go(std::shared_ptr<SeedBody> body) {
    if (!body) return;
    if (body->loop_->progress->forked()) return runtime::keep_in_child(std::move(body));
    body->close();
}

}  // namespace nexar::detail
