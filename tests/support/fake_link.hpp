#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "port/link.hpp"

namespace nexar::testing {

/// A link whose other end is the test, which may violate every rule of messages. The link itself
/// keeps the contract of port::Link: calls only enqueue, one Released for each send, one end for
/// each stream, bytes in order within the window, nothing after Down.
class FakeLink final : public port::Link {
public:
    static constexpr std::uint64_t kFirstWindow = std::uint64_t{64} * 1024;
    static constexpr std::uint64_t kBulkWindow = std::uint64_t{1024} * 1024;

    FakeLink(port::LinkId id, const Identity& peer) : id_(id), peer_(peer) {}

    port::LinkId id() const noexcept override { return id_; }
    const Identity& peer() const noexcept override { return peer_; }
    port::LinkSpeed speed() const noexcept override { return pace; }
    bool write(port::Lane lane, std::span<const port::ConstBytes> pieces) override;
    port::StreamId send(port::Source& source, const port::StreamOptions& options) override;
    void wake_source(port::StreamId /*stream*/) override {}
    void cancel(port::StreamId stream) override;
    void receive(port::Lane lane, port::Sink& sink) override;
    void receive(port::StreamId stream, port::Sink& sink) override;
    void open_window(port::StreamId stream) override;
    void wake_sink(port::StreamId stream) override;
    void wake_sink(port::Lane /*lane*/) override {}
    void refuse(port::StreamId stream) override;
    bool send_datagram(port::ConstBytes /*bytes*/) override { return false; }
    std::size_t max_datagram() const noexcept override { return datagram_bytes; }
    bool send_relayed(port::ConstBytes bytes) override {
        if (bytes.size() > relayed_room()) return false;
        relayed.emplace_back(bytes.begin(), bytes.end());
        return true;
    }
    std::size_t relayed_room() const noexcept override { return busy ? 0 : datagram_bytes; }
    TimePoint heard_at() const noexcept override { return heard; }
    Address remote() const noexcept override { return address; }
    void move_to(const Address& to) override { moves.push_back(to); }
    void close(std::string_view reason) override;
    void drop(std::string_view reason) override;

    // Actions of the peer and the network.
    void come_up();
    void arrive(port::Lane lane, port::ConstBytes bytes);
    port::StreamId open();
    /// Delivers as many bytes as the window allows, none for a finished stream, and returns their
    /// number.
    std::size_t arrive(port::StreamId stream, port::ConstBytes bytes);
    void finish(port::StreamId stream);
    void reset(port::StreamId stream);
    /// Completes a send: it has arrived, or the peer refused it.
    void release(port::StreamId stream, port::SendOutcome outcome);
    void go_down(const Error& reason);

    /// How many bytes a lane accepts before write() fails.
    void set_room(port::Lane lane, std::size_t bytes);

    /// First performs what earlier calls requested, as Carrier::flush() would.
    std::optional<port::LinkEvent> poll_event();

    // What the engine did to the link.
    const std::vector<std::byte>& written(port::Lane lane) const noexcept {
        return lanes_[static_cast<std::size_t>(lane)].written;
    }
    const std::optional<std::string>& closed() const noexcept { return closed_; }
    const std::optional<std::string>& dropped() const noexcept { return dropped_; }
    bool is_down() const noexcept { return down_; }
    /// True if this lane has a sink.
    bool reads(port::Lane lane) const noexcept {
        return lanes_[static_cast<std::size_t>(lane)].sink != nullptr;
    }
    /// Streams of the peer that have not ended.
    std::size_t incoming() const noexcept { return ins_.size(); }
    /// Bytes of these that their sinks have not taken.
    std::uint64_t parked() const noexcept;
    struct Outgoing {
        port::Source* source = nullptr;
        std::vector<std::byte> prefix{};
        bool cancelled = false;
    };
    const std::map<std::uint64_t, Outgoing>& outgoing() const noexcept { return outs_; }

    std::size_t datagram_bytes = 0;
    bool busy = false;  // takes no relayed datagrams
    std::deque<std::vector<std::byte>> relayed{};
    port::LinkSpeed pace{};
    TimePoint heard = TimePoint::max();
    Address address{};             // where the packets of the peer come from
    std::vector<Address> moves{};  // that move_to() requested
    /// Writes bytes directly into memory that a sink offers.
    bool direct = false;
    /// Cancelled streams count as completely sent.
    bool sent_whole = false;

private:
    struct LaneEnd {
        port::Sink* sink = nullptr;
        std::uint64_t taken = 0;
        std::vector<std::byte> written{};
        std::size_t room = std::numeric_limits<std::size_t>::max();
        bool full = false;
    };
    struct Incoming {
        port::Sink* sink = nullptr;
        std::vector<std::byte> parked{};
        std::uint64_t taken = 0;
        bool pending = false;
        bool window_open = false;
        bool refused = false;
        bool ended = false;
    };

    void emit(decltype(port::LinkEvent::what) what);
    Incoming* find(port::StreamId stream);
    void offer(Incoming& in);
    void settle();

    port::LinkId id_;
    Identity peer_;
    bool down_ = false;
    std::optional<std::string> closed_{};
    std::optional<std::string> dropped_{};
    std::array<LaneEnd, port::kLanes> lanes_{};
    std::map<std::uint64_t, Outgoing> outs_;
    std::map<std::uint64_t, Incoming> ins_;
    std::uint64_t next_ = 1;
    std::deque<port::LinkEvent> events_;
};

}  // namespace nexar::testing
