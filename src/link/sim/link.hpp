#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "link/common/even_share.hpp"
#include "link/common/relayed_queue.hpp"
#include "link/sim/options.hpp"
#include "link/sim/pipe.hpp"
#include "link/sim/world.hpp"
#include "port/link.hpp"

namespace nexar::sim {

class Carrier;
class Fabric;

/// One end of a simulated link.
///
/// Bytes leave inside Carrier::flush(), in the writer's order and at the rate of the weather, and
/// arrive inside on_ready() of the other end. Only relayed datagrams count as bytes; the others
/// leave at once. Windows, acknowledgements, refusals and the handshake are signals that travel
/// with the weather of their direction.
class Link final : public port::Link {
public:
    struct Start {
        port::LinkId id{};
        std::uint64_t wire = 0;  // the same on both ends, for the trace
        Identity peer{};
        std::string peer_name{};
        bool dialed = false;
    };
    Link(Fabric& fabric, Carrier& carrier, Start start);
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    port::LinkId id() const noexcept override { return start_.id; }
    const Identity& peer() const noexcept override { return start_.peer; }
    std::string_view kind() const noexcept override { return "fabric"; }
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
    void close(std::string_view reason) override;
    void drop(std::string_view reason) override;

    bool is_up() const noexcept { return state_ == State::up || state_ == State::lingering; }
    bool is_down() const noexcept { return state_ == State::down; }
    /// Bytes of lanes and streams that this end has sent.
    std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

private:
    friend class Carrier;
    friend class Fabric;
    friend class link::TimerHeap<Link>;

    using PipePtr = std::shared_ptr<Pipe>;
    enum class State : std::uint8_t { waiting, handshaking, up, lingering, down };
    enum class Kind : std::uint8_t {
        hello,
        reply,
        finish,
        refusal,
        progress,
        stop,
        farewell,
        goodbye
    };
    enum class Goodbye : std::uint8_t { say, silent };

    /// A signal from one end to the other, besides the bytes.
    struct Signal {
        TimePoint due{};
        Kind kind{};
        PipePtr pipe{};                  // of progress and stop
        std::uint64_t acknowledged = 0;  // of progress
        std::uint64_t limit = 0;
        bool all = false;      // everything arrived, including the end of the stream
        bool retired = false;  // the stream has ended: another one may be opened
    };
    struct Datagram {
        TimePoint due{};
        std::uint64_t number = 0;
        std::vector<std::byte> bytes{};
    };
    static bool later(const Datagram& a, const Datagram& b) noexcept {
        return a.due != b.due ? a.due > b.due : a.number > b.number;
    }

    // link.cpp: life of the link; called by the fabric and the carrier.
    void connect(Link* peer);
    void dial();
    void on_time(TimePoint now);
    void flush(TimePoint now);
    void set_blocked(bool blocked);
    void went_silent();
    void end_at(TimePoint when, Error reason);
    void give_up();
    void sever();
    void disappear();

    void touch();
    void rearm();
    void arm(Pipe& pipe);
    void arm_all();
    TimePoint timer() const noexcept;
    bool expects_signals() const noexcept;
    void take_signals(TimePoint now);
    void take_signal(TimePoint now, const Signal& signal);
    void on_hello(TimePoint now);
    void come_up();
    void tell(Signal signal);
    void end(Error reason, Goodbye goodbye);
    void end_half_open(const Error& reason);
    void emit(decltype(port::LinkEvent::what) what);
    bool nothing_unsent() const noexcept;
    void say_farewell(TimePoint now);
    Duration late();

    // link_write.cpp
    void on_progress(const Signal& signal);
    void on_stop(const Signal& signal);
    void open_waiting();
    void cancel_waiting();
    void write_datagrams(TimePoint now);
    void send_on(TimePoint now, TimePoint leaves, std::vector<std::byte> bytes);
    void put_datagram(TimePoint now, TimePoint leaves, std::vector<std::byte> bytes);
    std::size_t write_relayed(TimePoint now);
    void refuse_datagram(TimePoint now);
    bool has_payload() const noexcept { return queue_set_ != 0 || !relayed_.empty(); }
    void write_payload(TimePoint now);
    void write_next_piece(TimePoint now, std::size_t& budget);
    std::size_t write_piece(TimePoint now, Pipe& pipe);
    void occupy(TimePoint now, std::size_t bytes);
    std::size_t piece_size(std::uint64_t sendable);
    void put(TimePoint now, Pipe& pipe, Pipe::Segment segment);
    void enqueue(Pipe& pipe);
    void dequeue(Pipe& pipe);
    void settle(Pipe& pipe, port::SendOutcome outcome);

    // link_read.cpp
    std::size_t arrive(Pipe& pipe);
    void take_datagrams(TimePoint now);
    void take_refusal(TimePoint now);
    void look_at(Pipe& pipe);
    void look_at_pipes();
    void offer(Pipe& pipe);
    void finish(Pipe& pipe);
    void abort(Pipe& pipe);
    void discard(Pipe& pipe);
    std::vector<port::Rest> take_rests();
    std::array<port::LaneBytes, port::kLanes> take_untaken() const;
    std::array<port::LaneBytes, port::kLanes> take_unconfirmed() const;
    void report_later(Pipe& pipe);
    void report();
    std::uint64_t window(const Pipe& pipe) const noexcept;
    Pipe* find_in(port::StreamId stream) noexcept;

    Fabric* fabric_;
    Carrier* carrier_;
    World* world_;
    const FabricOptions* options_;
    Start start_;
    Link* peer_ = nullptr;  // null: there is no such node
    State state_ = State::waiting;
    bool forgotten_ = false;
    bool ready_ = false;  // in the carrier's list of links to flush
    // NOLINTNEXTLINE(readability-identifier-naming): the name that TimerHeap requires
    std::size_t heap_place = std::numeric_limits<std::size_t>::max();

    LinkWeather weather_{};  // of the direction from this end
    TimePoint free_at_ = TimePoint::min();
    std::uint64_t bytes_sent_ = 0;
    std::optional<std::uint64_t> break_at_bytes_{};
    bool dropped_ = false;  // ends with the next flush
    bool severed_ = false;  // nothing more leaves
    bool blocked_ = false;  // nothing arrives until it is healed
    bool peer_gone_ = false;
    std::optional<TimePoint> silent_since_{};
    TimePoint refused_at_ = TimePoint::max();  // when the refusal of a datagram arrives
    TimePoint refusal_due_{};                  // when the owner may hear of the next one

    TimePoint handshake_until_ = TimePoint::max();
    TimePoint linger_until_ = TimePoint::max();
    TimePoint end_at_ = TimePoint::max();
    std::optional<Error> end_reason_{};
    std::string close_reason_{};
    bool farewell_said_ = false;  // this end has delivered everything, and one of the two closes
    bool peer_parts_ = false;     // a farewell of the peer is in flight to this end, or has arrived
    bool peer_parted_ = false;    // it has arrived

    std::array<PipePtr, port::kLanes> lanes_out_{};
    std::array<PipePtr, port::kLanes> lanes_in_{};
    std::array<bool, port::kLanes> lane_full_{};
    std::map<std::uint64_t, PipePtr> outs_;
    std::map<std::uint64_t, PipePtr> ins_;
    std::uint64_t next_out_ = 0;
    std::uint64_t opened_ = 0;   // streams ever opened by this end
    std::uint64_t retired_ = 0;  // of these, those that have ended
    // Both take no memory while empty: a cluster has many links, most of them idle.
    std::array<std::list<Pipe*>, port::kPriorities> unopened_{};
    std::array<std::vector<Pipe*>, link::kWriteClasses> queues_{};
    link::ClassSet queue_set_ = 0;  // classes of queues_ that are not empty
    link::WriteOrder order_{};
    std::vector<PipePtr> to_cancel_;
    std::vector<PipePtr> to_look_at_;
    std::vector<PipePtr> to_report_;
    std::vector<std::vector<std::byte>> datagrams_;
    link::RelayedQueue relayed_;
    link::EvenShare share_{};
    std::uint64_t datagram_numbers_ = 0;

    // In flight to this end.
    std::deque<Signal> signals_;
    TimePoint last_signal_ = TimePoint::min();
    std::vector<Datagram> datagrams_in_;  // a heap
};

}  // namespace nexar::sim
