#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/time.hpp"
#include "link/common/even_share.hpp"
#include "link/common/relayed_queue.hpp"
#include "link/common/write_order.hpp"
#include "link/quic/black_hole.hpp"
#include "link/quic/in_stream.hpp"
#include "link/quic/options.hpp"
#include "link/quic/out_stream.hpp"
#include "link/quic/outbox.hpp"
#include "link/quic/packet_header.hpp"
#include "link/quic/packet_path.hpp"
#include "link/quic/refusals.hpp"
#include "link/quic/round_trips.hpp"
#include "link/quic/token_bucket.hpp"
#include "port/link.hpp"
#include "security/tls_session.hpp"

struct ngtcp2_conn;
struct ngtcp2_path;  // NOLINT(readability-identifier-naming): a name of ngtcp2

namespace nexar::quic {

class Connection;
struct ConnectionCallbacks;
struct CryptoCallbacks;

/// The services that a connection needs from its endpoint.
class Surroundings {
public:
    virtual ~Surroundings() = default;

    virtual void random_bytes(std::span<std::uint8_t> out) = 0;
    /// Makes a connection id. From now on packets with this id go to `connection`.
    virtual LocalCid new_cid(Connection& connection) = 0;
    virtual void drop_cid(const LocalCid& cid) = 0;
    virtual ResetToken reset_token(const LocalCid& cid) = 0;
    /// Until expect_no_reset(), a packet that ends with `token`, whatever its connection id, means
    /// that the peer no longer knows `connection` (RFC 9000 10.3.1).
    virtual void expect_reset(Connection& connection, const ResetToken& token) = 0;
    virtual void expect_no_reset(Connection& connection, const ResetToken& token) = 0;
    virtual void emit(port::LinkEvent event) = 0;
    /// Asks the endpoint to call write().
    virtual void wake(Connection& connection) = 0;
    virtual BufferPool& pool() = 0;
};

/// How a connection begins.
struct ConnectionStart {
    TimePoint now{};
    port::LinkId id{};
    Path path{};
    std::size_t largest_datagram = kLeastDatagram;
    LinkOptions options{};
    security::TlsOptions tls{};
    /// Whether the dialer may be a joiner, which has no certificate.
    bool joins = false;
};

/// One QUIC connection: packets in, packets out, time as a parameter, no I/O.
///
/// This class hides ngtcp2 and its callbacks. After finished() it may be destroyed if the link was
/// forgotten.
class Connection final : public port::Link {
public:
    /// Begins a handshake.
    static Result<std::unique_ptr<Connection>> dial(Surroundings& around, ConnectionStart start);

    /// Answers a client's first packet, which the caller must pass to receive() next.
    static Result<std::unique_ptr<Connection>> accept(Surroundings& around, ConnectionStart start,
                                                      const ClientHelloPacket& first);

    ~Connection() override;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // port::Link
    port::LinkId id() const noexcept override { return id_; }
    const Identity& peer() const noexcept override { return peer_; }
    std::string_view kind() const noexcept override { return "quic"; }
    TimePoint heard_at() const noexcept override { return heard_at_; }
    port::LinkSpeed speed() const noexcept override {
        return {.latency = std::chrono::microseconds(10), .bytes_per_second = 2e9};
    }
    Address remote() const noexcept override { return path_.remote; }
    Result<void> export_key(std::string_view label, port::Bytes out) const override {
        return tls_->export_key(label, out);
    }
    port::ConstBytes peer_ca() const noexcept override;
    bool write(port::Lane lane, std::span<const port::ConstBytes> pieces) override;
    port::StreamId send(port::Source& source, const port::StreamOptions& options) override;
    void wake_source(port::StreamId stream) override;
    void cancel(port::StreamId stream) override;
    void receive(port::Lane lane, port::Sink& sink) override;
    void receive(port::StreamId stream, port::Sink& sink) override;
    void open_window(port::StreamId stream) override;
    void wake_sink(port::StreamId stream) override;
    void wake_sink(port::Lane lane) override;
    void refuse(port::StreamId stream) override;
    bool send_datagram(port::ConstBytes bytes) override;
    std::size_t max_datagram() const noexcept override;
    bool send_relayed(port::ConstBytes bytes) override;
    std::size_t relayed_room() const noexcept override;
    bool settled() const noexcept override;
    void move_to(const Address& remote) override;
    void refresh() override;
    void close(std::string_view reason) override;
    void drop(std::string_view reason) override;

    /// Takes one packet from the peer, or from anyone else who knows one of our connection ids.
    /// Returns true if the peer protected it and it is newer than all earlier ones. The first
    /// packets of a handshake are not protected.
    bool receive(TimePoint now, const Path& path, std::uint8_t ecn,
                 std::span<const std::byte> packet);

    /// Writes a bounded amount of what is due. Returns true if the bound or a blocked outbox
    /// stopped it.
    bool write(TimePoint now, Outbox& out);

    /// The part of write() that needs no room in the outbox: ends streams that were cancelled or
    /// refused here.
    void release_given_up();

    /// When write() must be called at the latest.
    TimePoint deadline() const noexcept;

    /// True if write() may be delayed a little: nothing of ours is pending, and no acknowledgement
    /// is due.
    bool can_wait(TimePoint now) const noexcept;

    /// Moves the connection to another local address, which the peer then validates. Only the
    /// dialing side can; Errc::unsupported on the other.
    Result<void> migrate(TimePoint now, const Address& local);

    /// Replaces the keys of both directions. The connection does so itself before a key is used up.
    Result<void> update_keys(TimePoint now);

    bool dialed() const noexcept { return dialed_; }
    bool is_up() const noexcept { return state_ == State::up || state_ == State::lingering; }
    bool is_down() const noexcept { return state_ == State::down; }
    /// True if the link is down and late packets of the peer need no more answers.
    bool finished(TimePoint now) const noexcept { return is_down() && now >= gone_at_; }
    /// Ends the connection at once: sends nothing and reports Down.
    void abandon(Error reason);
    /// Cancels a handshake and informs the peer.
    void give_up();
    /// Ends the handshake of a stranger because its slot is needed, and informs the stranger: an
    /// honest peer dials again.
    void make_room(TimePoint now);

    /// The peer's host reports that no process listens there (ICMP). `quoted` is the beginning of
    /// the refused packet, as far as the report contains it. Anyone may have forged the report.
    /// Returns false if it quotes a packet that this connection did not send.
    bool refused(TimePoint now, std::span<const std::byte> quoted);
    /// Passes the report on to the owner of the link: PeerRefused.
    void report_refusal(TimePoint now);

    const Address& local() const noexcept { return path_.local; }
    /// What the acceptor calls the address at which a packet arrived, see refresh().
    Address name_of(const Address& local) const noexcept;

    struct Statistics {
        std::size_t datagram_bytes = 0;  // the largest that the path carries, as discovered
        Duration round_trip{};
        std::uint64_t congestion_window = 0;
        std::uint64_t in_flight = 0;
        std::uint64_t parked = 0;  // received bytes that wait for a sink
        std::uint64_t key_updates = 0;
        std::uint64_t path_changes = 0;
        std::uint64_t black_holes = 0;
    };
    Statistics statistics() const;

private:
    friend struct CryptoCallbacks;
    friend struct ConnectionCallbacks;

    enum class State : std::uint8_t { handshaking, up, lingering, down };
    enum class Closing : std::uint8_t {
        say,     // tell the peer
        silent,  // the peer knows, or must get no answer
    };

    Connection(Surroundings& around, ConnectionStart&& start, bool dialed);

    Result<void> start_tls(security::TlsOptions options);
    void adopt(ngtcp2_conn* conn);

    // Callbacks of ngtcp2. False: the connection must end; callback_failure_ says why.
    void on_up();
    bool on_stream_data(InStream& stream, port::ConstBytes bytes, bool ended);
    void on_stream_opened(std::int64_t quic_id);
    bool on_in_closed(InStream& stream, bool reset);
    bool on_reset(InStream* stream);
    void on_acknowledged(OutStream& stream);
    bool on_out_closed(OutStream& stream, bool reset);
    void on_datagram(port::ConstBytes bytes);
    bool violated(std::string_view what);

    // connection_enqueue.cpp
    void enqueue(OutStream& stream);
    void dequeue(OutStream& stream);

    // connection_write.cpp
    struct Turn;
    void open_waiting();
    void cancel_waiting();
    bool write_packets(TimePoint now, Outbox& out);
    bool may_send_bulk(TimePoint now);
    std::size_t part_limit() const noexcept;
    bool lanes_are_busy() const noexcept;
    bool may_probe(TimePoint now);
    std::ptrdiff_t write_packet(Turn& turn);
    std::ptrdiff_t write_stream(Turn& turn, OutStream& stream, std::size_t limit);
    std::ptrdiff_t finish_packet(Turn& turn);
    OutStream* next_stream(const Turn& turn, std::size_t& limit);
    link::ClassSet waiting_classes(std::uint64_t credit) const noexcept;
    link::ClassSet ready_classes(const Turn& turn, std::uint64_t credit) const noexcept;
    void account(Turn& turn, OutStream& stream, std::size_t bytes, bool with_end);
    Path path_of(const ngtcp2_path& path) const;
    void look_for_black_hole(TimePoint now);
    std::size_t losses() const noexcept;

    // connection_datagrams.cpp
    std::ptrdiff_t write_datagrams(Turn& turn);
    std::ptrdiff_t write_relayed(Turn& turn);
    std::ptrdiff_t put_datagram(Turn& turn, port::ConstBytes bytes, bool& done);
    bool relayed_next(const Turn& turn, bool own_is_ready) const noexcept;

    // connection_path.cpp
    bool comes_from_peer() const noexcept;
    void begin_move(TimePoint now);
    void begin_refresh(TimePoint now);
    void prove_path(TimePoint now);
    void on_path(const ngtcp2_path& path, bool works);
    void use_path(const Path& path);
    void begin_return(TimePoint now);

    // connection_read.cpp
    void look_at(InStream& stream);
    void look_at_streams();
    void consumed(InStream& stream, std::uint64_t bytes);
    std::uint64_t window_of(const InStream& stream) const noexcept;
    std::vector<port::Rest> take_rests();
    void unpark(std::uint64_t bytes);
    void finish(InStream& stream);
    void abort(InStream& stream);
    void erase_if_done(InStream& stream);
    InStream* find_in(port::StreamId stream) noexcept;
    void offer(InStream& stream);
    void handle_read(TimePoint now, int code);

    // connection_close.cpp
    /// Ends a link that was dropped.
    void end_dropped(TimePoint now);
    bool nothing_unsent() const noexcept;
    /// Ends the control lane if it is time to; returns true if it did.
    bool say_farewell(TimePoint now);
    bool may_end(TimePoint now) const noexcept;
    /// Moves the bytes of the lanes that others must deliver or send again.
    void take_lane_bytes(port::Down& down);
    void write_goodbye(TimePoint now, Outbox& out);
    /// How long a packet of this side, or its answer, may still be in flight (RFC 9000 10.2).
    Duration three_probe_timeouts() const noexcept;

    // connection_silence.cpp
    void begin_to_listen() noexcept;
    void heard(TimePoint now) noexcept;
    TimePoint silence_ends() const noexcept;
    /// When a link that is being closed ends because its peer is dead.
    std::optional<TimePoint> closing_ends() const noexcept;
    /// Handles expired timers; returns false if one of them ended the link.
    bool survives(TimePoint now);
    void look_for_stall(TimePoint now);
    void plan_refresh() noexcept;
    Duration probe_timeout() const noexcept;
    void start_probe(TimePoint now);
    void end_probe();

    // connection.cpp
    void fail(TimePoint now, Error reason, Closing closing);
    void fail_with(TimePoint now, int code);
    void drop_handshake() noexcept;
    Error describe(int code) const;
    Error describe_peer_close() const;
    void say_goodbye(TimePoint now, std::uint64_t code, const Error& reason);
    void release_all(port::SendOutcome outcome);
    void settle(OutStream& stream, port::SendOutcome outcome);
    void wake() { around_->wake(*this); }
    std::uint64_t bytes_in_flight() const noexcept;
    std::uint64_t stamp(TimePoint now) noexcept;

    Surroundings* around_;
    port::LinkId id_;
    LinkOptions options_;
    Path path_;
    std::size_t largest_datagram_;
    bool dialed_;
    bool joins_;
    State state_ = State::handshaking;
    Identity peer_{};

    std::unique_ptr<security::TlsSession> tls_;
    struct ConnFree {
        void operator()(ngtcp2_conn* conn) const noexcept;
    };
    struct TlsBinding;
    std::unique_ptr<TlsBinding> binding_;
    std::unique_ptr<ngtcp2_conn, ConnFree> conn_;
    std::uint64_t last_stamp_ = 0;
    TimePoint now_{};  // of the current call, for callbacks
    RoundTrips round_trips_;
    std::optional<Error> callback_failure_{};
    int library_error_ = 0;  // of ngtcp2, for the peer

    std::array<OutStream, port::kLanes> lanes_;
    std::array<bool, port::kLanes> lane_full_{};
    std::array<port::Sink*, port::kLanes> lane_sinks_{};
    std::array<InStream*, port::kLanes> lane_streams_{};
    std::unordered_map<std::uint64_t, std::unique_ptr<OutStream>> outs_;
    std::unordered_map<std::uint64_t, std::unique_ptr<InStream>> ins_;
    std::uint64_t next_stream_ = 0;
    std::array<std::deque<OutStream*>, link::kWriteClasses> ready_;
    link::ClassSet ready_set_ = 0;  // classes of ready_ that are not empty
    std::array<std::deque<OutStream*>, link::kWriteClasses> unopened_;
    std::vector<OutStream*> to_cancel_;
    std::vector<std::uint64_t> to_look_at_;
    link::WriteOrder order_;
    BlackHole black_hole_;
    TimePoint lanes_wrote_at_{};
    TimePoint probes_at_ = TimePoint::max();  // when to probe the path's MTU first
    bool probing_ = false;                    // that time has passed
    TimePoint up_at_{};
    TimePoint answered_at_{};  // when the peer last acknowledged something, or had nothing to
    TimePoint heard_at_{};     // when its last packet arrived
    TimePoint begun_at_{};     // when the handshake began
    Duration idle_limit_{};    // the smaller idle timeout of the two sides
    Refusals refusals_;
    TimePoint refusal_due_{};  // when the owner may hear of the next one
    bool stalled_ = false;     // as port::Stalled says
    bool asking_ = false;      // the packet being written must elicit an answer
    std::deque<std::vector<std::byte>> datagrams_;
    link::RelayedQueue relayed_;
    link::EvenShare share_;
    std::optional<Address> wanted_remote_{};  // of a move_to() that the next write() begins
    std::optional<Address> tried_remote_{};   // of the move that has begun
    bool wants_refresh_ = false;
    bool other_name_ = false;  // of the local end, see refresh()
    TimePoint refreshed_at_{};
    TimePoint refresh_due_ = TimePoint::max();  // although nothing arrives
    TimePoint unproven_at_ = TimePoint::max();  // since when, at least, see prove_path()
    bool moved_at_once_ = false;                // before the peer has answered on the new path
    bool returns_ = false;                      // from there
    // Since the peer acknowledged something:
    unsigned unheard_ = 0;  // refreshes while nothing arrived
    bool moved_in_vain_ = false;
    unsigned at_once_ = 0;  // moves at once

    std::uint64_t parked_ = 0;
    std::uint64_t withheld_ = 0;  // connection credit held back while too much is parked

    bool useful_ = false;       // the packet being read made progress
    std::uint64_t opened_ = 0;  // new packets that were authenticated
    TokenBucket idle_packets_;
    TokenBucket resets_;

    std::string close_reason_;
    bool dropped_ = false;     // ends with the next write()
    bool peer_ended_ = false;  // the peer ended its control lane: it has delivered everything
    /// Set by the next write() after close(), which does not know the time.
    std::optional<TimePoint> linger_until_{};
    Duration gone_after_{};  // how long a link that is down still answers late packets
    TimePoint gone_at_ = TimePoint::max();
    std::vector<std::byte> goodbye_;  // the last packet, repeated if the peer did not get it
    bool goodbye_due_ = false;
    std::uint64_t packets_since_goodbye_ = 0;
    std::uint64_t goodbye_threshold_ = 1;
    std::uint64_t key_updates_ = 0;
    std::uint64_t path_changes_ = 0;
    std::uint64_t black_holes_ = 0;
    std::uint64_t turns_ = 0;
    std::size_t unpaced_ = 0;  // bytes of a burst not yet reported to the pacer
};

}  // namespace nexar::quic
