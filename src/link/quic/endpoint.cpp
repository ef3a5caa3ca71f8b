#include "link/quic/endpoint.hpp"

#include <gnutls/crypto.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/random.hpp"

namespace nexar::quic {

namespace {

// Each ICMP message, which may be forged, costs a search of all links.
constexpr double kRefusalsPerSecond = 1000;

Secret random_secret(const std::function<void(std::span<std::uint8_t>)>& random) {
    return Secret::filled(32, [&](std::span<std::byte> bytes) {
        random({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
    });
}

void machine_random(std::span<std::uint8_t> out) {
    const int code = gnutls_rnd(GNUTLS_RND_RANDOM, out.data(), out.size());
    NEXAR_ASSERT(code == 0);
}

EndpointOptions completed(EndpointOptions options) {
    if (!options.random) options.random = machine_random;
    if (options.secret.size() == 0) options.secret = random_secret(options.random);
    return options;
}

Path path_to(const Address& remote) {
    return {.local = remote.is_tunnel() ? tunnel_local() : Address::any(remote.is_v6()),
            .remote = remote};
}

std::uint64_t random_number(const EndpointOptions& options) {
    std::array<std::uint8_t, 8> bytes{};
    options.random(bytes);
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
}

void warn_of(Protection protection) {
    if (protection == Protection::full) return;
    NEXAR_LOG_WARNING(
        "protection=none: data crosses the network unencrypted and anyone on the path can read "
        "and change it; use this only on a network that nobody else can reach");
}

}  // namespace

std::size_t Endpoint::SeededHash::operator()(std::span<const std::uint8_t> bytes) const noexcept {
    std::uint64_t hash = seed ^ bytes.size();
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
        hash = SplitMix64(hash ^ word).next();
    }
    return hash;
}

Endpoint::Endpoint(PacketPath& out, BufferPool& pool, EndpointOptions options)
    : pool_(&pool),
      tunnels_(out),
      options_(completed(std::move(options))),
      outbox_(tunnels_),
      gate_(options_.gate, random_number(options_)),
      refusals_(kRefusalsPerSecond, kRefusalsPerSecond),
      by_first_cid_(0, SeededHash{random_number(options_)}),
      by_reset_token_(0, SeededHash{random_number(options_)}) {
    warn_of(options_.link.protection);
}

void Endpoint::set_protection(Protection protection) {
    if (protection == options_.link.protection) return;
    options_.link.protection = protection;
    warn_of(protection);
}

Endpoint::~Endpoint() = default;

void Endpoint::random_bytes(std::span<std::uint8_t> out) {
    options_.random(out);
}

ResetToken Endpoint::reset_token(const LocalCid& cid) {
    return make_reset_token(options_.secret, cid);
}

LocalCid Endpoint::new_cid(Connection& connection) {
    Entry* entry = making_;
    if (entry == nullptr) entry = entries_.at(connection.id().value()).get();
    LocalCid cid;
    do {
        options_.random(cid.bytes);
    } while (by_cid_.contains(cid));
    by_cid_.emplace(cid, entry);
    entry->cids.push_back(cid);
    return cid;
}

void Endpoint::drop_cid(const LocalCid& cid) {
    const auto found = by_cid_.find(cid);
    if (found == by_cid_.end()) return;
    std::erase(found->second->cids, cid);
    if (last_number_ == cid.number()) last_entry_ = nullptr;
    by_cid_.erase(found);
}

void Endpoint::expect_reset(Connection& connection, const ResetToken& token) {
    Entry& entry = *entries_.at(connection.id().value());
    // The first connection with a token keeps it, so that a peer cannot take over the token of
    // another one.
    if (by_reset_token_.emplace(token, &entry).second) entry.reset_tokens.push_back(token);
}

void Endpoint::expect_no_reset(Connection& connection, const ResetToken& token) {
    Entry& entry = *entries_.at(connection.id().value());
    if (std::erase(entry.reset_tokens, token) != 0) by_reset_token_.erase(token);
}

ConnectionStart Endpoint::start(TimePoint now, const Path& path,
                                const security::Expectation& expected) {
    ConnectionStart start;
    start.now = now;
    start.path = path;
    start.options = options_.link;
    start.largest_datagram =
        std::min(tunnels_.largest_datagram(path.remote), options_.link.largest_datagram);
    start.tls.credentials = options_.credentials;
    start.tls.expected = expected;
    start.tls.wall_clock = options_.wall_clock;
    return start;
}

Endpoint::Entry& Endpoint::make_entry() {
    auto owned = std::make_unique<Entry>();
    owned->id = port::LinkId(next_link_++);
    return *entries_.emplace(owned->id.value(), std::move(owned)).first->second;
}

Result<port::LinkId> Endpoint::dial(TimePoint now, const Address& remote,
                                    const security::Expectation& expected) {
    NEXAR_ASSERT(options_.credentials != nullptr);
    return dial(start(now, path_to(remote), expected));
}

Result<port::LinkId> Endpoint::dial(TimePoint now, const port::DialTarget& target) {
    if (const auto* member = std::get_if<port::MemberTarget>(&target.peer)) {
        NEXAR_ASSERT(options_.credentials != nullptr);
        return dial(now, target.address,
                    {.cluster = options_.credentials->identity().cluster, .node = member->node});
    }
    if (const auto* join = std::get_if<port::JoinTarget>(&target.peer)) {
        return dial_as_joiner(now, target.address, join->ca);
    }
    return dial_seed(now, target.address);
}

/// Links to a seed are always protected.
Result<port::LinkId> Endpoint::dial_seed(TimePoint now, const Address& remote) {
    NEXAR_ASSERT(options_.credentials != nullptr);
    ConnectionStart how =
        start(now, path_to(remote),
              {.cluster = options_.credentials->identity().cluster, .node = {}, .seed = true});
    how.options.protection = Protection::full;
    return dial(std::move(how));
}

Result<port::LinkId> Endpoint::dial_as_joiner(TimePoint now, const Address& remote,
                                              const std::optional<security::PublicKeyHash>& ca) {
    ConnectionStart how = start(now, path_to(remote), {});
    how.options.protection = Protection::full;
    how.tls.credentials = nullptr;
    how.tls.ca = ca;
    how.joins = true;
    return dial(std::move(how));
}

Result<port::LinkId> Endpoint::dial(ConnectionStart how) {
    Entry& entry = make_entry();
    how.id = entry.id;
    making_ = &entry;
    auto connection = Connection::dial(*this, std::move(how));
    making_ = nullptr;
    if (!connection) {
        erase(entry);
        return connection.error();
    }
    entry.connection = std::move(*connection);
    set_ready(entry);
    return entry.id;
}

void Endpoint::emit(port::LinkEvent event) {
    Entry& entry = *entries_.at(event.link.value());
    if (std::holds_alternative<port::Up>(event.what)) closed_half_open(entry);
    if (const auto* down = std::get_if<port::Down>(&event.what)) {
        if (down->reason.code() == Errc::limit_exceeded ||
            down->reason.code() == Errc::protocol_violation) {
            ++counts_.cut_off;
        }
        if (entry.half_open) {
            on_incoming_failed(entry, down->reason);
            return;
        }
    }
    if (entry.connection != nullptr && entry.connection->is_down() &&
        std::holds_alternative<port::Released>(event.what)) {
        emit_before_down(std::move(event));
        return;
    }
    events_.push_back(std::move(event));
}

/// Down must stay the last event of a link even if the owner sent something before it polled Down.
void Endpoint::emit_before_down(port::LinkEvent event) {
    const auto down = std::ranges::find_if(events_, [&](const port::LinkEvent& waiting) {
        return waiting.link == event.link && std::holds_alternative<port::Down>(waiting.what);
    });
    events_.insert(down, std::move(event));
}

void Endpoint::on_incoming_failed(Entry& entry, const Error& reason) {
    closed_half_open(entry);
    ++counts_.refused;
    entry.forgotten = true;  // its link was never reported
    NEXAR_LOG_INFO("{} was rejected: {}", entry.connection->remote().text(), reason.what());
    events_.push_back(
        {.link = entry.id,
         .what = port::Refused{.from = entry.connection->remote().text(), .reason = reason}});
}

void Endpoint::closed_half_open(Entry& entry) {
    if (!std::exchange(entry.half_open, false)) return;
    gate_.closed(entry.id);
}

void Endpoint::wake(Connection& connection) {
    if (making_ != nullptr) return;
    set_ready(*entries_.at(connection.id().value()));
}

void Endpoint::set_ready(Entry& entry) {
    if (std::exchange(entry.ready, true)) return;
    ready_.push_back(&entry);
}

void Endpoint::update_timer(Entry& entry, TimePoint now) {
    Connection& connection = *entry.connection;
    if (!connection.finished(now)) {
        timers_.set(entry, connection.deadline());
        return;
    }
    timers_.remove(entry);
    if (entry.forgotten) finished_.push_back(entry.id);
}

void Endpoint::flush(TimePoint now) {
    outbox_.flush();
    while (!timers_.empty() && timers_.due() <= now) {
        Entry& entry = timers_.first();
        timers_.remove(entry);
        set_ready(entry);
    }
    // Connections that reached their bound continue with the next flush.
    serving_.swap(ready_);
    std::size_t served = 0;
    for (; served < serving_.size() && !outbox_.blocked(); ++served) {
        Entry& entry = *serving_[served];
        entry.ready = false;
        const bool more = entry.connection->write(now, outbox_);
        update_timer(entry, now);
        if (more) set_ready(entry);
    }
    // A blocked socket delays what is sent, but not the release of cancelled streams.
    for (std::size_t i = served; i < serving_.size(); ++i) {
        serving_[i]->connection->release_given_up();
    }
    ready_.insert(ready_.begin(), serving_.begin() + static_cast<std::ptrdiff_t>(served),
                  serving_.end());
    serving_.clear();
    outbox_.flush();
    reap();
}

bool Endpoint::flush_is_urgent(TimePoint now) const noexcept {
    return !events_.empty() || std::ranges::any_of(ready_, [&](const Entry* entry) {
        return !entry->connection->can_wait(now);
    });
}

void Endpoint::reap() {
    for (const port::LinkId id : std::exchange(finished_, {})) {
        if (const auto found = entries_.find(id.value()); found != entries_.end()) {
            erase(*found->second);
        }
    }
}

void Endpoint::erase(Entry& entry) {
    for (const LocalCid& cid : entry.cids) by_cid_.erase(cid);
    for (const ResetToken& token : entry.reset_tokens) by_reset_token_.erase(token);
    if (entry.first_cid) by_first_cid_.erase(*entry.first_cid);
    timers_.remove(entry);
    if (entry.ready) std::erase(ready_, &entry);
    if (last_entry_ == &entry) last_entry_ = nullptr;
    closed_half_open(entry);
    entries_.erase(entry.id.value());
}

std::optional<TimePoint> Endpoint::next_deadline() const {
    // Events of the last flush() must not wait for the next packet.
    if (!events_.empty() || !tunnels_.empty()) return TimePoint{};
    if (!ready_.empty() && !outbox_.blocked()) return TimePoint{};
    if (timers_.empty()) return std::nullopt;
    return timers_.due();
}

std::optional<port::LinkEvent> Endpoint::poll_event() {
    if (events_.empty()) return std::nullopt;
    port::LinkEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
}

void Endpoint::forget(port::LinkId link) {
    const auto found = entries_.find(link.value());
    if (found == entries_.end()) return;
    NEXAR_ASSERT(found->second->connection->is_down());
    found->second->forgotten = true;
    set_ready(*found->second);
}

void Endpoint::abandon(port::LinkId link) {
    const auto found = entries_.find(link.value());
    if (found == entries_.end()) return;
    found->second->connection->give_up();
    set_ready(*found->second);
}

void Endpoint::refused(TimePoint now, const Address& remote, std::span<const std::byte> quoted) {
    if (!refusals_.take(now)) return;
    bool believed = false;
    for (const auto& [number, entry] : entries_) {
        if (entry->connection->remote() != remote) continue;
        believed = entry->connection->refused(now, quoted) || believed;
    }
    if (!believed) return;
    for (const auto& [number, entry] : entries_) {
        if (entry->connection->remote() == remote) entry->connection->report_refusal(now);
    }
}

Connection* Endpoint::find(port::LinkId link) noexcept {
    const auto found = entries_.find(link.value());
    if (found == entries_.end() || !found->second->connection->is_up()) return nullptr;
    return found->second->connection.get();
}

}  // namespace nexar::quic
