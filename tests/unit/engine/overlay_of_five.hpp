#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/pool_profile.hpp"
#include "engine/overlay.hpp"
#include "support/fake_link.hpp"
#include "support/linkless_carrier.hpp"
#include "wire/codec.hpp"
#include "wire/plain_envelope.hpp"

/// For the tests of Overlay: one of five nodes, with links whose other ends are the test.
namespace nexar::engine::overlaying {

using namespace std::chrono_literals;
using nexar::testing::FakeLink;

using Bytes = std::vector<std::byte>;

inline Bytes packet(unsigned first, std::size_t size = 100) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + i * 7);
    return bytes;
}

inline NodeId node(unsigned number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes[5] = static_cast<std::byte>(number + 1);
    return NodeId(bytes);
}

inline Identity identity(unsigned number) {
    return {.cluster = ClusterId(), .node = node(number), .incarnation = Incarnation(1)};
}

/// Link states have their own tests.
class TrustingSigner final : public port::Signer {
public:
    const port::RawKey& key() const noexcept override { return key_; }
    port::Signature sign(std::span<const std::byte> /*bytes*/) const override { return {}; }
    bool verify(std::span<const std::byte> /*bytes*/, const port::RawKey& /*key*/,
                const std::array<std::byte, 32>& /*key_hash*/,
                const port::Signature& /*signature*/) const override {
        return true;
    }

private:
    port::RawKey key_{};
};

/// The ends of this node's tunnels.
class TunnelEnds final : public LinklessCarrier {
public:
    std::optional<port::TunnelPacket> poll_tunnelled() override {
        if (outgoing.empty()) return std::nullopt;
        port::TunnelPacket first = std::move(outgoing.front());
        outgoing.pop_front();
        return first;
    }
    bool on_tunnelled(TimePoint /*now*/, const NodeId& from, port::ConstBytes bytes) override {
        arrived.emplace_back(from, Bytes(bytes.begin(), bytes.end()));
        return accepts;
    }

    bool accepts = true;  // what arrives is new
    std::deque<port::TunnelPacket> outgoing{};
    std::vector<std::pair<NodeId, Bytes>> arrived{};
};

/// Rank 0 of five, connected to its neighbours.
class OverlayOfFive : public ::testing::Test {
protected:
    OverlayOfFive(const routing::Topology& topology, std::initializer_list<unsigned> neighbours)
        : neighbourhood_(topology) {
        for (unsigned rank = 0; rank < 5; ++rank) {
            view_.members.push_back(
                {.node = node(rank), .incarnation = Incarnation(1), .rank = Rank(rank)});
            if (rank != 0) engine_.add_peer(node(rank));
        }
        engine_.await_verdicts(true);
        engine_.set_view(view_);
        overlay_.adopt(now_, view_, identity(0));
        for (const unsigned rank : neighbours) connect(rank);
        overlay_.turn(now_);
    }
    ~OverlayOfFive() override {
        engine_.close();
        for (auto& [rank, link] : links_) {
            if (!link->is_down()) link->go_down(Error(Errc::closed, "the test is over"));
        }
        pump();
        while (engine_.poll_done() != nullptr) {
        }
    }

    void connect(unsigned rank) {
        auto& link = links_[rank];
        link = std::make_unique<FakeLink>(port::LinkId(100 + rank), identity(rank));
        link->datagram_bytes = 1400;
        link->come_up();
        pump();
    }
    void pump() {
        for (auto& [rank, link] : links_) {
            while (auto event = link->poll_event()) {
                if (!overlay_.take(now_, *event)) engine_.handle(*event);
            }
        }
    }
    void turn(Duration later = Duration::zero()) {
        now_ += later;
        pump();
        overlay_.turn(now_);
    }
    void send(unsigned to, const Bytes& bytes) {
        carrier_.outgoing.push_back({.to = node(to), .bytes = bytes});
        turn();
    }
    void arrives(unsigned from, const wire::Envelope& envelope, const Bytes& content) {
        const auto front = wire::encode_envelope(envelope, content.size());
        Bytes datagram(front.begin(), front.end());
        datagram.insert(datagram.end(), content.begin(), content.end());
        port::LinkEvent event{.link = port::LinkId(100 + from),
                              .what = port::DatagramArrived{.bytes = std::move(datagram)}};
        EXPECT_TRUE(overlay_.take(now_, event));
        turn();
    }
    /// Bytes of link states that these neighbours got.
    std::size_t told_to(std::initializer_list<unsigned> ranks) {
        std::size_t bytes = 0;
        for (const unsigned rank : ranks) {
            bytes += links_.at(rank)->written(port::Lane::control).size();
        }
        return bytes;
    }
    /// The envelopes that left over the link to this rank.
    std::vector<wire::Envelope> sent_to(unsigned rank) {
        std::vector<wire::Envelope> all;
        for (const Bytes& one : std::exchange(links_.at(rank)->relayed, {})) {
            all.push_back(wire::decode_envelope(one).value());
        }
        return all;
    }
    static wire::Envelope envelope(unsigned source, unsigned target, std::uint8_t hops,
                                   std::uint16_t choice = 0) {
        return {.source = Rank(source), .target = Rank(target), .hops = hops, .choice = choice};
    }

    TimePoint now_{10s};
    View view_{.epoch = Epoch(1)};
    std::map<unsigned, std::unique_ptr<FakeLink>> links_;
    BufferPool pool_{PoolProfile::training()};
    Engine engine_{{}, pool_};
    TunnelEnds carrier_;
    TrustingSigner signer_;
    Neighbourhood neighbourhood_;
    Overlay overlay_{{engine_, carrier_, signer_, neighbourhood_}};
};

/// Its neighbours are ranks 1 and 4.
class RingOverlay : public OverlayOfFive {
protected:
    RingOverlay() : OverlayOfFive(routing::Topology::k_regular(2), {1, 4}) {}
};

/// Its neighbours are all others.
class FullOverlay : public OverlayOfFive {
protected:
    FullOverlay() : OverlayOfFive(routing::Topology(), {1, 2, 3, 4}) {}

    /// The ranks over whose links packets left.
    std::vector<unsigned> ways_taken() {
        std::vector<unsigned> ranks;
        for (const unsigned rank : {1U, 2U, 3U, 4U}) {
            if (!sent_to(rank).empty()) ranks.push_back(rank);
        }
        return ranks;
    }
    /// Bytes of link states that others got.
    std::size_t told() { return told_to({2, 3, 4}); }
};

/// A ring that forms: none of the two links is up yet.
class FormingRing : public OverlayOfFive {
protected:
    FormingRing() : OverlayOfFive(routing::Topology::k_regular(2), {}) {}
};

/// A full mesh that forms: rank 4 is missing.
class FormingMesh : public OverlayOfFive {
protected:
    FormingMesh() : OverlayOfFive(routing::Topology(), {1, 2, 3}) {}
};

}  // namespace nexar::engine::overlaying
