#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "base/pool_profile.hpp"
#include "engine/engine.hpp"
#include "support/fake_link.hpp"
#include "support/link_end.hpp"
#include "support/said.hpp"

/// An engine with two peers that the test plays: one violates the protocol, the other follows it.
namespace nexar::engine {

using nexar::testing::FakeLink;
using nexar::testing::operator+;
using nexar::testing::pattern;
using nexar::testing::said;
using nexar::testing::stream_of;
using port::Lane;
using Bytes = nexar::testing::Bytes;

inline constexpr ContextId kWorld{7};
inline constexpr Rank kMe{0};
inline constexpr Rank kHostile{1};
inline constexpr Rank kHonest{2};

inline NodeId node(std::uint8_t number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes.back() = std::byte{number};
    return NodeId(bytes);
}

/// Limits so small that a few frames reach them.
inline EngineOptions small_options() {
    EngineOptions options;
    options.eager_limit = 256;
    options.bulk_head = 1024;
    options.shared = {.payload = 4096, .headers = 8};
    options.reserve = {.payload = 1024, .headers = 4};
    options.max_early_contexts = 3;
    options.max_control_backlog = 16;
    return options;
}

/// An operation with its memory and the number of times that it ended.
struct Asked {
    explicit Asked(std::size_t bytes) : memory(bytes), region(memory), shown(memory) {}

    Bytes memory;
    port::Bytes region;
    port::ConstBytes shown;
    ReceiveOperation receive{};
    SendOperation send{};
    ProbeOperation probe{};
    CollectiveOperation collective{};
    int ended = 0;
    const Operation* last = nullptr;  // the one that ended

    const std::optional<Error>& error() const { return last->error; }
};

class HostilePeer : public ::testing::Test {
protected:
    explicit HostilePeer(const EngineOptions& options = small_options(),
                         PoolMemory& memory = system_memory())
        : pool_(PoolProfile::inference(), memory),
          engine_(std::make_unique<Engine>(options, pool_)),
          hostile_(port::LinkId(11), {.cluster = {}, .node = node(1), .incarnation = {}}),
          honest_(port::LinkId(12), {.cluster = {}, .node = node(2), .incarnation = {}}) {
        const std::array<NodeId, 3> members{node(0), node(1), node(2)};
        world_ = &engine_->add_context(kWorld, members, kMe);
        hostile_.come_up();
        honest_.come_up();
        pump();
        for (FakeLink* link : {&hostile_, &honest_}) {
            link->arrive(Lane::control, said(wire::Preamble{.lane = wire::Lane::control}));
            link->arrive(Lane::eager, said(wire::Preamble{.lane = wire::Lane::eager}));
        }
        hostile_.arrive(Lane::eager, begins(kWorld, kHostile));
        honest_.arrive(Lane::eager, begins(kWorld, kHonest));
        waiting_ = &receive(kHostile, 999'999);
    }

    /// Every operation must end exactly once, and the engine must give all memory back.
    ~HostilePeer() override {
        engine_->close();
        hostile_.go_down(Error(Errc::link_closed, "closed"));
        honest_.go_down(Error(Errc::link_closed, "closed"));
        pump();
        EXPECT_TRUE(engine_->idle());
        EXPECT_EQ(engine_->pending(), 0U);
        for (const Asked& asked : asked_) EXPECT_EQ(asked.ended, 1);
        engine_.reset();
        EXPECT_EQ(pool_.statistics().total.bytes_in_use, 0U);
    }

    void pump() {
        for (FakeLink* link : {&hostile_, &honest_}) {
            while (const auto event = link->poll_event()) engine_->handle(*event);
        }
        while (Operation* done = engine_->poll_done()) {
            auto& asked = *static_cast<Asked*>(done->owner);
            ++asked.ended;
            asked.last = done;
        }
    }

    Asked& receive(Rank from, std::uint64_t tag, std::size_t bytes = 4096) {
        Asked& asked = asked_.emplace_back(bytes);
        asked.receive.owner = &asked;
        asked.receive.pattern = {.source = from, .tag = Tag(tag)};
        asked.receive.content = {&asked.region, 1};
        engine_->start(*world_, asked.receive);
        return asked;
    }

    Asked& send(Rank to, std::size_t bytes, bool synchronous = false) {
        return send_in(*world_, to, bytes, synchronous);
    }
    Asked& send_in(Context& context, Rank to, std::size_t bytes, bool synchronous = false) {
        Asked& asked = asked_.emplace_back(bytes);
        asked.memory = pattern(bytes, bytes);
        asked.shown = asked.memory;
        asked.send.owner = &asked;
        asked.send.to = to;
        asked.send.tag = Tag(1);
        asked.send.synchronous = synchronous;
        asked.send.content = {&asked.shown, 1};
        engine_->start(context, asked.send);
        return asked;
    }

    static wire::MessageHeader header(std::uint64_t sequence, std::uint64_t tag, std::uint64_t size,
                                      ContextId context = kWorld) {
        wire::MessageHeader made;
        made.context = context;
        made.sequence = Sequence(sequence);
        made.tag = Tag(tag);
        made.size = size;
        return made;
    }

    static Bytes begins(ContextId context, Rank rank, std::uint32_t size = 3,
                        const wire::ContextOrigin& origin = {}) {
        return said(
            wire::ContextBegin{.context = context, .origin = origin, .rank = rank, .size = size});
    }

    static Bytes eager(const wire::MessageHeader& header) {
        return said(wire::EagerHeader{header}) +
               pattern(header.tag.value(), static_cast<std::size_t>(header.size));
    }
    static Bytes bulk(const wire::MessageHeader& header) { return said(wire::BulkHeader{header}); }

    /// Delivers bytes from the hostile peer.
    void says(Lane lane, std::span<const std::byte> bytes) {
        hostile_.arrive(lane, bytes);
        pump();
    }
    port::StreamId streams(std::span<const std::byte> bytes) {
        const port::StreamId stream = hostile_.open();
        pump();
        EXPECT_EQ(hostile_.arrive(stream, bytes), bytes.size());
        pump();
        return stream;
    }

    /// Expects that the engine disconnected the hostile peer and named the rule it broke, that a
    /// pending receive fails with this rule and the peer's node id, and that the other peer is
    /// unaffected.
    void expect_disconnected(Errc code, std::string_view rule) {
        ASSERT_TRUE(hostile_.closed()) << "the peer was not disconnected";
        EXPECT_THAT(*hostile_.closed(), ::testing::HasSubstr(rule));
        EXPECT_FALSE(honest_.closed());
        hostile_.go_down(Error(Errc::link_closed, "this side closed the link"));
        pump();
        ASSERT_EQ(waiting_->ended, 1);
        ASSERT_TRUE(waiting_->error());
        EXPECT_EQ(waiting_->error()->code(), code) << waiting_->error()->what();
        EXPECT_EQ(waiting_->error()->rank(), public_rank(kHostile));
        EXPECT_THAT(waiting_->error()->cause(), ::testing::HasSubstr(rule));
        EXPECT_THAT(waiting_->error()->cause(), ::testing::HasSubstr(node(1).to_hex()));
        expect_other_peer_unaffected();
    }

    void expect_not_disconnected() {
        EXPECT_FALSE(hostile_.closed()) << *hostile_.closed();
        EXPECT_EQ(waiting_->ended, 0);
    }

    void expect_other_peer_unaffected() {
        const std::uint64_t tag = 500 + honest_sequence_;
        Asked& asked = receive(kHonest, tag, 200);
        honest_.arrive(Lane::eager, eager(header(honest_sequence_++, tag, 200)));
        pump();
        ASSERT_EQ(asked.ended, 1);
        EXPECT_FALSE(asked.error());
        EXPECT_EQ(asked.memory, pattern(tag, 200));
        Asked& sent = send(kHonest, 16);
        pump();
        EXPECT_EQ(sent.ended, 1);
        EXPECT_FALSE(sent.error());
    }

    template <class Message>
    std::vector<Message> control_frames() const {
        return nexar::testing::frames_of<Message>(hostile_.written(Lane::control));
    }

    BufferPool pool_;
    std::unique_ptr<Engine> engine_;
    FakeLink hostile_;
    FakeLink honest_;
    Context* world_ = nullptr;
    std::deque<Asked> asked_;
    Asked* waiting_ = nullptr;  // a receive from the hostile peer that nothing matches
    std::uint64_t honest_sequence_ = 0;
};

}  // namespace nexar::engine
