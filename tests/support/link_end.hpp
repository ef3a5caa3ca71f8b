#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "link/sim/node_carrier.hpp"
#include "port/link.hpp"
#include "port/memory.hpp"

namespace nexar::quic {
class Connection;
}

/// Links of simulated nodes, on either level, and everything that both ends observed.
namespace nexar::testing {

/// Keeps the bytes it receives, up to an allowance. Asserts that bytes arrive in order and once.
class CollectingSink final : public port::Sink {
public:
    static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

    std::vector<std::byte> bytes{};
    std::uint64_t allowance = kUnlimited;
    /// Called before every write.
    std::function<void()> on_write{};
};

/// A source that generates its bytes on demand, and only up to `available`.
class AskedSource final : public port::Source {
public:
    explicit AskedSource(std::vector<std::byte> content, std::uint64_t first = ~std::uint64_t{0})
        : available(first), content_(std::move(content)) {}

    std::uint64_t size() const noexcept override { return content_.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {}; }
    std::size_t fill(std::uint64_t offset, port::Bytes out) noexcept override;

    std::uint64_t available;
    std::uint64_t asked = 0;  // the first byte not yet requested

private:
    std::vector<std::byte> content_;
};

struct Incoming {
    CollectingSink sink{};
    bool in_sink = false;  // set by LinkEnd::receive(); else the test has its own sink
    bool finished = false;
    bool aborted = false;
    std::uint64_t size = 0;  // from Finished
};

/// One end of a link, and everything that it observed. Asserts the contract of port::Link in every
/// scenario: Up first, Down last, one Released for each send, one end for each stream.
class LinkEnd {
public:
    LinkEnd() = default;
    LinkEnd(const LinkEnd&) = delete;
    LinkEnd& operator=(const LinkEnd&) = delete;

    port::Link& link() noexcept { return *link_; }
    /// The connection of a QUIC link.
    quic::Connection& connection() noexcept;
    bool is_up() const noexcept { return was_up_ && !down_; }
    bool was_up() const noexcept { return was_up_; }
    bool dialed() const noexcept { return dialed_; }
    /// Why the link ended; nullopt while it has not.
    const std::optional<Error>& down() const noexcept { return down_; }
    /// The rests delivered with Down.
    const std::vector<port::Rest>& rests() const noexcept { return rests_; }
    /// The bytes of the lanes that came with Down.
    std::array<port::LaneBytes, port::kLanes> untaken{};
    std::array<port::LaneBytes, port::kLanes> unconfirmed{};

    /// Sends a copy of `content` split into regions; overwrites and frees the copy as soon as it is
    /// released.
    port::StreamId send(std::span<const std::byte> content, const port::StreamOptions& options = {},
                        std::size_t regions = 1);
    /// The same from a source that the caller keeps.
    port::StreamId send_from(port::Source& source, const port::StreamOptions& options = {});

    bool write(port::Lane lane, std::span<const std::byte> bytes);

    std::optional<port::SendOutcome> outcome(port::StreamId stream) const;
    std::size_t released() const noexcept { return released_; }
    /// True if every send has been released.
    bool all_released() const noexcept;

    /// Payload streams of the peer, in the order of opening.
    const std::vector<port::StreamId>& opened() const noexcept { return opened_; }
    Incoming& incoming(port::StreamId stream) { return incoming_.at(stream.value()); }
    Incoming& incoming(std::size_t index) { return incoming(opened_.at(index)); }
    std::size_t finished() const noexcept { return finished_; }
    std::size_t aborted() const noexcept { return aborted_; }
    CollectingSink& lane(port::Lane lane) noexcept {
        return lanes_[static_cast<std::size_t>(lane)];
    }
    std::vector<std::vector<std::byte>> datagrams{};
    std::size_t writable = 0;
    std::size_t refusals = 0;             // PeerRefused
    std::vector<bool> stalls{};           // Stalled
    std::vector<Address> paths{};         // PathChanged
    std::vector<Address> failed_paths{};  // PathFailed

    /// Called for each stream of the peer; empty: receive it at once.
    std::function<void(LinkEnd&, port::StreamId)> on_opened{};
    void receive(port::StreamId stream);

private:
    friend class CarrierSide;

    struct Outgoing {
        std::vector<std::byte> content{};
        std::vector<port::ConstBytes> regions{};
        std::unique_ptr<port::MemorySource> source{};
        std::optional<port::SendOutcome> outcome{};
    };

    void handle(port::LinkEvent& event);
    void on_released(const port::Released& released);

    port::Link* link_ = nullptr;
    bool was_up_ = false;
    bool dialed_ = false;
    std::optional<Error> down_{};
    std::vector<port::Rest> rests_{};
    std::map<std::uint64_t, Outgoing> outgoing_;
    std::map<std::uint64_t, Incoming> incoming_;
    std::vector<port::StreamId> opened_;
    std::array<CollectingSink, port::kLanes> lanes_{};
    std::size_t released_ = 0;
    std::size_t finished_ = 0;
    std::size_t aborted_ = 0;
};

/// A node with all its links. Forgets links that are Down, as an engine would.
class CarrierSide {
public:
    explicit CarrierSide(sim::NodeCarrier& carrier);
    CarrierSide(const CarrierSide&) = delete;
    CarrierSide& operator=(const CarrierSide&) = delete;

    sim::Actor& actor() noexcept { return loop_; }

    /// Sets what carries the packets of this side's tunnels.
    void carry_tunnels(std::function<void(port::TunnelPacket)> carry) {
        loop_.on_tunnelled = std::move(carry);
    }

    /// The end of a link that this side has just dialed.
    LinkEnd& dialed(port::LinkId link);
    /// Links that peers dialed, in the order in which they came up.
    LinkEnd& accepted(std::size_t index = 0) { return *accepted_.at(index); }
    std::size_t accepted_count() const noexcept { return accepted_.size(); }

    const std::vector<port::Refused>& refused() const noexcept { return refused_; }

    /// Called for each new link of a peer when it is up, to configure it before anything arrives.
    std::function<void(LinkEnd&)> on_accepted{};

private:
    void handle(port::LinkEvent event);

    sim::NodeCarrier* carrier_;
    std::map<std::uint64_t, std::unique_ptr<LinkEnd>> ends_;
    std::vector<LinkEnd*> accepted_;
    std::vector<port::Refused> refused_;
    sim::CarrierLoop loop_;
};

/// Bytes that differ by position and seed.
std::vector<std::byte> pattern(std::uint64_t seed, std::size_t bytes);

std::span<const std::byte> bytes_of(std::string_view text) noexcept;

}  // namespace nexar::testing
