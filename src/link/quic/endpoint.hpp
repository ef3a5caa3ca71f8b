#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/address.hpp"
#include "base/buffer_pool.hpp"
#include "base/time.hpp"
#include "link/common/timer_heap.hpp"
#include "link/quic/connection.hpp"
#include "link/quic/gate.hpp"
#include "link/quic/options.hpp"
#include "link/quic/outbox.hpp"
#include "link/quic/packet_header.hpp"
#include "link/quic/packet_path.hpp"
#include "link/quic/tunnel_path.hpp"
#include "port/link.hpp"
#include "security/credentials.hpp"
#include "security/tls_session.hpp"

namespace nexar::quic {

struct EndpointOptions {
    LinkOptions link{};
    GateLimits gate{};
    /// Null: until set_credentials() the endpoint admits nobody and can dial only a JoinTarget.
    std::shared_ptr<const security::Credentials> credentials{};
    security::WallClock wall_clock{};  // empty: the machine's
    /// Whether peers may dial us.
    bool accepts = true;
    /// Whether joiners, which have no certificate, may dial us as well. True for a seed.
    bool accepts_joiners = false;
    /// 32 bytes from which reset tokens are derived. If they survive a restart, peers notice it at
    /// once. Empty: random.
    Secret secret{};
    /// Unpredictable bytes; a simulation sets its own source. Empty: the machine's.
    std::function<void(std::span<std::uint8_t>)> random{};
};

/// Counts of packets that belong to no connection, and of handshakes of strangers.
struct EndpointCounts {
    std::uint64_t packets_in = 0;
    std::uint64_t malformed = 0;    // not QUIC, or not the first packet of a connection
    std::uint64_t unknown = 0;      // short headers of unknown connections
    std::uint64_t resets_sent = 0;  // stateless
    std::uint64_t version_answers = 0;
    std::uint64_t retries = 0;
    std::uint64_t dropped = 0;  // packets of strangers beyond the limits
    std::uint64_t bad_tokens = 0;
    std::uint64_t accepted = 0;  // handshakes begun for strangers
    std::uint64_t refused = 0;   // of these, those that failed
    std::uint64_t evicted = 0;   // of these, those ended to make room for others
    std::uint64_t cut_off = 0;   // authenticated peers that exceeded a limit
    std::uint64_t forged = 0;    // packets of a connection in envelopes of another node
};

/// Many connections over one packet path: finds the connection of a packet, answers strangers, and
/// keeps the timers of all connections. No I/O: the owner passes arrived packets to receive(), and
/// the endpoint sends packets through a PacketPath.
class Endpoint final : private Surroundings {
public:
    /// `out` and `pool` must outlive it.
    Endpoint(PacketPath& out, BufferPool& pool, EndpointOptions options);
    ~Endpoint() override;
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    /// Begins a link; Up or Down follows. The handshake checks `expected`.
    Result<port::LinkId> dial(TimePoint now, const Address& remote,
                              const security::Expectation& expected);

    // As the functions of port::Carrier of the same name.
    Result<port::LinkId> dial(TimePoint now, const port::DialTarget& target);
    void set_credentials(std::shared_ptr<const security::Credentials> credentials) {
        options_.credentials = std::move(credentials);
    }
    void set_protection(Protection protection);
    void set_members(std::span<const Address> members) { gate_.set_members(members); }
    void set_crowded(bool crowded) noexcept { outbox_.set_crowded(crowded); }

    /// Takes datagrams that arrived together on one path; all have `segment_bytes` except the last.
    void receive(TimePoint now, const Path& path, std::uint8_t ecn,
                 std::span<const std::byte> bytes, std::size_t segment_bytes);

    /// As the functions of port::Carrier of the same name.
    std::optional<port::TunnelPacket> poll_tunnelled() { return tunnels_.poll(); }
    bool on_tunnelled(TimePoint now, const NodeId& from, std::span<const std::byte> packet);

    /// The host of `remote` refused a datagram (ICMP); `quoted` is the datagram's beginning.
    void refused(TimePoint now, const Address& remote, std::span<const std::byte> quoted);

    void flush(TimePoint now);
    /// As port::Carrier::has_unsent().
    bool has_unsent() const noexcept { return !ready_.empty() || blocked(); }
    /// As port::Carrier::flush_is_urgent().
    bool flush_is_urgent(TimePoint now) const noexcept;
    bool blocked() const noexcept { return outbox_.blocked(); }
    std::optional<TimePoint> next_deadline() const;
    std::optional<port::LinkEvent> poll_event();
    void forget(port::LinkId link);
    /// Abandons a link that is not up yet: Down follows at once.
    void abandon(port::LinkId link);

    /// Null for an unknown link or one that is not up.
    Connection* find(port::LinkId link) noexcept;

    const EndpointCounts& counts() const noexcept { return counts_; }
    std::size_t half_open() const noexcept { return gate_.half_open(); }
    std::size_t connections() const noexcept { return entries_.size(); }

private:
    struct Entry {
        std::unique_ptr<Connection> connection;
        std::vector<LocalCid> cids;
        std::vector<ResetToken> reset_tokens;  // of the peer's ids that are in use
        std::optional<AnyCid> first_cid;       // the client's choice, until it knows ours
        std::size_t heap_place = link::TimerHeap<Entry>::kNowhere;
        bool ready = false;
        bool half_open = false;
        bool forgotten = false;
        port::LinkId id{};
    };
    /// For bytes that peers choose: the secret seed keeps them from choosing collisions.
    struct SeededHash {
        std::uint64_t seed = 0;
        std::size_t operator()(std::span<const std::uint8_t> bytes) const noexcept;
        std::size_t operator()(const AnyCid& cid) const noexcept { return (*this)(cid.span()); }
        std::size_t operator()(const ResetToken& token) const noexcept {
            return (*this)(std::span<const std::uint8_t>(token));
        }
    };

    // Surroundings
    void random_bytes(std::span<std::uint8_t> out) override;
    LocalCid new_cid(Connection& connection) override;
    void drop_cid(const LocalCid& cid) override;
    ResetToken reset_token(const LocalCid& cid) override;
    void expect_reset(Connection& connection, const ResetToken& token) override;
    void expect_no_reset(Connection& connection, const ResetToken& token) override;
    void emit(port::LinkEvent event) override;
    void wake(Connection& connection) override;
    BufferPool& pool() override { return *pool_; }

    ConnectionStart start(TimePoint now, const Path& path, const security::Expectation& expected);
    Result<port::LinkId> dial_seed(TimePoint now, const Address& remote);
    Result<port::LinkId> dial_as_joiner(TimePoint now, const Address& remote,
                                        const std::optional<security::PublicKeyHash>& ca);
    Result<port::LinkId> dial(ConnectionStart how);
    Entry& make_entry();
    Entry* route(const PacketTarget& target) noexcept;
    Entry* route_reset(const PacketTarget& target, std::span<const std::byte> packet) noexcept;
    Entry* same_as_before(std::span<const std::byte> packet) const noexcept;
    /// Returns the result of Connection::receive(), or false if the packet is for none.
    bool receive_packet(TimePoint now, const Path& path, std::uint8_t ecn,
                        std::span<const std::byte> packet);
    void receive_stranger(TimePoint now, const Path& path, std::uint8_t ecn,
                          std::span<const std::byte> packet, const PacketTarget& target);
    void accept(TimePoint now, const Path& path, std::uint8_t ecn,
                std::span<const std::byte> packet, const ClientHelloPacket& hello);
    bool make_room(TimePoint now, const Address& from);
    void answer(const Path& path, std::size_t bytes);
    void send_reset(TimePoint now, const Path& path, std::size_t packet_bytes,
                    const PacketTarget& target);
    void set_ready(Entry& entry);
    void update_timer(Entry& entry, TimePoint now);
    void closed_half_open(Entry& entry);
    void emit_before_down(port::LinkEvent event);
    void on_incoming_failed(Entry& entry, const Error& reason);
    void erase(Entry& entry);
    void reap();

    BufferPool* pool_;
    TunnelPath tunnels_;
    EndpointOptions options_;
    Outbox outbox_;
    Gate gate_;
    TokenBucket refusals_;  // bounds how many ICMP refusals are examined
    EndpointCounts counts_;
    std::uint64_t next_link_ = 1;
    Entry* making_ = nullptr;  // the entry whose connection is being constructed
    std::unordered_map<std::uint64_t, std::unique_ptr<Entry>> entries_;
    std::unordered_map<LocalCid, Entry*> by_cid_;
    std::unordered_map<AnyCid, Entry*, SeededHash> by_first_cid_;
    std::unordered_map<ResetToken, Entry*, SeededHash> by_reset_token_;
    link::TimerHeap<Entry> timers_;
    std::vector<Entry*> ready_;
    std::vector<Entry*> serving_;  // those that flush() took from ready_
    std::vector<port::LinkId> finished_;
    std::deque<port::LinkEvent> events_;
    std::uint64_t last_number_ = 0;  // the next packet is usually for the same connection
    Entry* last_entry_ = nullptr;
};

}  // namespace nexar::quic
