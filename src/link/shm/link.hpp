#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "link/common/timer_heap.hpp"
#include "link/common/write_order.hpp"
#include "link/shm/in_stream.hpp"
#include "link/shm/invitation.hpp"
#include "link/shm/memory.hpp"
#include "link/shm/options.hpp"
#include "link/shm/out_stream.hpp"
#include "link/shm/process_life.hpp"
#include "link/shm/record.hpp"
#include "link/shm/ring.hpp"
#include "link/shm/shares.hpp"
#include "port/link.hpp"

namespace nexar::shm {

class Carrier;

/// One end of a link over two rings, one for each direction.
///
/// Lane bytes are written into the ring by write() itself if there is room; everything else by
/// flush(). flush() also rings the bell if the peer sleeps.
class Link final : public port::Link {
public:
    struct Start {
        port::LinkId id{};
        Identity peer{};
        bool dialed = false;  // this side sent the invitation
        InvitationText invitation{};
        TimePoint handshake_until{};
    };
    Link(Carrier& carrier, const Start& start);
    ~Link() override;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    port::LinkId id() const noexcept override { return start_.id; }
    const Identity& peer() const noexcept override { return start_.peer; }
    std::string_view kind() const noexcept override { return "shm"; }
    port::LinkSpeed speed() const noexcept override {
        return {.latency = std::chrono::nanoseconds(300),
                .bytes_per_second = 12e9,
                .eager_bytes = wire::kMaxEagerBytes};
    }
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
    Result<void> share(std::uint64_t name,
                       const std::shared_ptr<port::SharedMemory>& memory) override;
    void nudge() noexcept override;
    void close(std::string_view reason) override;
    void drop(std::string_view reason) override;

    /// False from drop() on.
    bool is_up() const noexcept {
        return (state_ == State::up || state_ == State::lingering) && !dropped_;
    }
    bool is_down() const noexcept { return state_ == State::down; }
    /// True if the link is down, or will be with the next flush().
    bool has_ended() const noexcept { return is_down() || dropped_; }
    bool is_handshaking() const noexcept { return state_ == State::handshaking; }

private:
    friend class Carrier;
    friend class link::TimerHeap<Link>;
    friend struct LinkPeek;  // of tests

    enum class State : std::uint8_t { handshaking, up, lingering, down };
    enum class PeerProcess : std::uint8_t { alive, gone };

    // link.cpp: life of the link; called by the carrier.
    Result<void> say_hello();
    /// The listener's part: checks the peer's memory, answers, and comes up.
    void take_hello(Descriptor socket, const Greeting& hello, const Message& message);
    void take_answer(Message& message);
    void come_up(RingMemory theirs);
    void on_socket();
    void on_hang_up();
    void on_time(TimePoint now);
    void give_up();
    /// Before the link is destroyed: the peer must not believe that this process has ended.
    void abandon_at_exit() noexcept;
    void end(const Error& reason, PeerProcess process);
    void publish_end(std::string_view reason) noexcept;
    bool end_if_failed();
    void violated(std::string_view what);
    void emit(decltype(port::LinkEvent::what) what);
    void touch();
    void rearm();
    TimePoint timer() const noexcept;
    Error peer_closed() const;

    // link_sleep.cpp
    bool something_to_do() noexcept;
    void set_sleep(bool asleep) noexcept;
    bool reader_advanced() noexcept;
    void wait_for_reader(std::uint64_t bytes) noexcept;
    void publish_taken() noexcept;
    void ring_if_asleep() noexcept;
    void ring_after_fence(std::uint32_t told) noexcept;

    // link_write.cpp
    bool write_queued(std::size_t index, std::span<const port::ConstBytes> pieces,
                      std::size_t total);
    void flush(TimePoint now);
    void put(RecordKind kind, std::uint8_t detail, std::size_t bytes) noexcept;
    void open_waiting();
    void cancel_waiting();
    void write_resets();
    void write_reports();
    void write_pieces();
    std::size_t write_lane(std::size_t index);
    std::size_t write_stream(OutStream& stream);
    link::ClassSet ready_classes() const noexcept;
    void enqueue(OutStream& stream);
    void dequeue(OutStream& stream);
    void settle(OutStream& stream, port::SendOutcome outcome);
    void on_report(std::uint8_t detail, const StreamReport& report);
    void on_lane_report(std::uint8_t lane, std::uint64_t limit);

    // link_read.cpp
    bool poll() {
        if (reader_.arrived()) return take_records();
        if (reader_.read() != published_ || waits_for_ != 0) poll_idle();
        return false;
    }
    void poll_idle();
    bool take_records();
    void take_record(RecordHead head, port::ConstBytes content);
    void take_stream_bytes(std::uint8_t detail, port::ConstBytes content);
    void take_reset(std::uint64_t number);
    void offer(InStream& stream);
    void end_in(InStream& stream, bool finished);
    void grant(InStream& stream);
    void grant(InLane& lane, std::size_t index);
    void report_later(InStream& stream, std::uint8_t detail);
    void look_at(InStream& stream);
    void look_at_streams();
    InStream* find_in(port::StreamId stream) noexcept;

    // link_close.cpp
    bool nothing_unsent() noexcept;
    void say_farewell(TimePoint now);
    std::vector<port::Rest> take_rests();
    port::LaneBytes untaken(std::size_t lane) const;
    void collect_unconfirmed(std::array<port::LaneBytes, port::kLanes>& out) const;

    // link_share.cpp
    void take_share(Message& message);

    // What polls and small writes use comes first.
    RingReader reader_;
    RingWriter writer_;
    std::uint64_t published_ = 0;  // the last value of our Control::taken
    /// How far the peer must read until this side can go on; 0: it does not wait for that.
    std::uint64_t waits_for_ = 0;
    std::uint64_t waits_since_ = 0;  // what the peer had read then
    bool ready_ = false;             // in the carrier's list of links to flush
    bool bell_due_ = false;          // in the carrier's list of links whose bell may be due
    std::uint32_t to_tell_ = 0;      // which sleepers a bell may be due for
    State state_ = State::handshaking;
    bool dropped_ = false;  // nothing that the peer can write is read any more
    Carrier* carrier_;
    const LinkOptions* options_;
    std::array<OutLane, port::kLanes> lanes_out_{};
    std::array<InLane, port::kLanes> lanes_in_{};

    RingMemory own_;
    RingMemory theirs_;
    std::uint32_t sleep_count_ = 0;
    std::uint32_t rung_ = 0;  // the last Control::sleep of the peer that we rang for

    Start start_;
    Descriptor socket_;
    Descriptor process_;              // of the peer
    ProcessLife life_;                // of the same process
    std::uint64_t read_at_look_ = 0;  // how far the reader was at the last look at it
    // NOLINTNEXTLINE(readability-identifier-naming): the name that TimerHeap requires
    std::size_t heap_place = std::numeric_limits<std::size_t>::max();
    std::optional<Error> failure_{};  // ends the link when the current call allows it
    bool given_up_ = false;
    TimePoint hello_at_ = TimePoint::max();  // when to try to connect again

    std::unordered_map<std::uint64_t, std::unique_ptr<OutStream>> outs_;  // by id
    std::unordered_map<std::uint64_t, OutStream*> numbered_;  // not retired; null: settled
    std::uint64_t next_out_ = 0;
    std::uint64_t next_number_ = 0;
    std::uint64_t active_ = 0;  // streams that count against the peer's limit
    std::array<std::deque<OutStream*>, port::kPriorities> unopened_{};
    std::array<std::deque<OutStream*>, port::kPriorities> queues_{};
    link::WriteOrder order_{};
    std::vector<std::uint64_t> to_cancel_;
    std::vector<std::uint64_t> to_reset_;
    bool look_due_ = false;
    bool more_to_write_ = false;  // a bound stopped the last flush

    std::map<std::uint64_t, std::unique_ptr<InStream>> ins_;
    std::uint64_t next_in_ = 0;
    std::uint64_t granted_ = 0;  // bytes that the open windows of all streams still allow
    std::vector<std::uint64_t> to_look_at_;
    std::uint8_t lanes_to_look_at_ = 0;  // one bit each
    std::vector<std::uint64_t> to_report_;
    std::uint8_t lanes_to_report_ = 0;

    std::string close_reason_;
    TimePoint linger_until_ = TimePoint::max();
    bool linger_armed_ = false;
    bool farewell_said_ = false;
    bool peer_parted_ = false;  // the peer has delivered everything
    bool peer_ended_ = false;   // its goodbye was read

    SharesOut shares_out_;
    std::shared_ptr<ShareBudget> shares_in_;
};

}  // namespace nexar::shm
