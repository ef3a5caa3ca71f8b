#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.hpp"
#include "link/quic/udp_carrier.hpp"
#include "link_loop.hpp"
#include "lossy_path.hpp"
#include "message_ring.hpp"
#include "party.hpp"
#include "port/memory.hpp"
#include "side.hpp"

namespace nexar::bench {

/// Requests of a fixed size, sent at fixed times whether or not earlier replies have arrived.
struct RequestPlan {
    std::size_t bytes = 64;
    Duration every = std::chrono::microseconds(500);
};

/// One end of a QUIC link: bulk messages are payload streams, requests use the eager lane.
class QuicSide final : public Side {
public:
    enum class Role : std::uint8_t { client, server };

    /// `party` and `ring` must outlive it.
    QuicSide(Role role, const Contender& how, const Party& party, MessageRing& ring);

    std::uint16_t port() const noexcept { return carrier_->local().port(); }

    /// Client: opens the link to a server on this host.
    void dial(std::uint16_t port);
    /// Server: waits for the client's link.
    void accept();

    void send(std::size_t messages) override;
    void receive(std::size_t messages) override;
    void settle() override;
    std::vector<double> ping(const PingPlan& plan) override;
    void echo(std::size_t bytes) override;
    void leave() override;
    void stay() override;
    SideNotes notes() override;

    /// Server: from now on echoes requests of this size, in addition to everything else.
    void answer(std::size_t bytes) { request_.resize(bytes); }

    /// Client: like send(), with requests at the same time. Returns how long each request took from
    /// its due time to the arrival of its echo, in seconds.
    std::vector<double> send_with_requests(std::size_t messages, const RequestPlan& plan);

private:
    /// Receives the bytes of the eager lane, in arbitrary pieces, and calls on_message() for each
    /// complete message.
    class EagerSink final : public port::Sink {
    public:
        explicit EagerSink(QuicSide& owner) noexcept : owner_(&owner) {}
        std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
        port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
            return {};
        }

    private:
        QuicSide* owner_;
        std::size_t filled_ = 0;
    };

    struct InSlot {
        std::optional<port::MemorySink> sink{};
        bool taken = false;
    };

    void take(const port::LinkEvent& event);
    void on(const port::Up& up);
    void on(const port::Down& down);
    void on(const port::Opened& opened);
    void on(const port::Finished& finished);
    void on(const port::Released& released);
    template <class Other>
    void on(const Other& /*unused here*/) {}

    void on_message();
    void start_sending(std::size_t messages);
    void send_slot(std::size_t slot);
    void place_waiting();
    bool all_released() const noexcept { return released_ == to_send_; }
    void run(const std::function<bool()>& done, std::string_view doing);
    void drive_for(Duration time);
    void write_request(std::byte mark);

    Role role_;
    const Party* party_;
    MessageRing* ring_;
    BufferPool pool_;
    port::Link* link_ = nullptr;
    std::optional<Error> down_;
    bool leaving_ = false;

    std::array<port::ConstBytes, MessageRing::kSlots> regions_{};
    std::vector<port::MemorySource> sources_;                     // one per slot
    std::unordered_map<std::uint64_t, std::size_t> out_streams_;  // to slots
    std::size_t to_send_ = 0;
    std::size_t started_ = 0;
    std::size_t released_ = 0;

    std::array<InSlot, MessageRing::kSlots> in_;
    std::unordered_map<std::uint64_t, std::size_t> in_streams_;  // to slots
    std::deque<port::StreamId> waiting_;                         // open, without a slot yet
    std::size_t next_in_ = 0;                                    // slot to try first
    std::size_t finished_ = 0;

    EagerSink eager_;
    std::vector<std::byte> request_;   // of the agreed size; the last one received
    std::vector<TimePoint> arrivals_;  // client: of the echoes
    bool last_came_ = false;

    // Last, so that they are destroyed before the memory that the link refers to.
    LossyPath* lossy_ = nullptr;  // inside the carrier
    std::unique_ptr<quic::UdpCarrier> carrier_;
    std::unique_ptr<LinkLoop> loop_;
};

}  // namespace nexar::bench
