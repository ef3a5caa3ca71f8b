// Members come and go, one after the other: the engine of a survivor must not grow.

#include <array>
#include <initializer_list>

#include "hostile.hpp"
#include "support/allocations.hpp"

namespace nexar::engine {
namespace {

using namespace std::chrono_literals;

NodeId node_of(std::uint64_t number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = std::byte((number >> (8 * i)) & 0xFFU);
    bytes.back() = std::byte{1};
    return NodeId(bytes);
}

/// A node whose only other member fails and is replaced again and again.
class Churn {
public:
    Churn() : pool_(PoolProfile::inference()), engine_(options(), pool_) {
        function_.name = "echo";
        EXPECT_TRUE(engine_.calls().add(function_));
    }
    ~Churn() {
        engine_.close();
        pump();
        EXPECT_TRUE(engine_.idle());
    }
    Churn(const Churn&) = delete;
    Churn& operator=(const Churn&) = delete;

    /// A member joins, is in a communicator with this node, and fails in the middle of traffic.
    void cycle() {
        const NodeId other = node_of(++joined_);
        FakeLink link(port::LinkId(joined_), {.cluster = {}, .node = other, .incarnation = {}});
        link_ = &link;
        engine_.advance(now_ += 1ms);
        set_view({node_of(0), other});
        engine_.add_peer(other);
        link.come_up();
        pump();
        link.arrive(Lane::control, said(wire::Preamble{.lane = wire::Lane::control}));
        link.arrive(Lane::eager, said(wire::Preamble{.lane = wire::Lane::eager}));
        link.arrive(Lane::rpc, said(wire::Preamble{.lane = wire::Lane::rpc}));
        const ContextId id(1000 + joined_);
        Context& world = engine_.add_context(id, std::array{node_of(0), other}, kMe);
        engine_.calls().set_world(world);
        link.arrive(Lane::eager, introduction(id));
        exchange(world);
        talk_early(id);
        fail(world, other);
        engine_.end_context(world);
        link_ = nullptr;
    }

    Engine& engine() { return engine_; }

private:
    static EngineOptions options() {
        EngineOptions made = small_options();
        made.awaits_verdicts = true;
        return made;
    }

    void set_view(std::initializer_list<NodeId> nodes) {
        View view{.epoch = Epoch(++epoch_), .next_rank = Rank(static_cast<std::uint32_t>(epoch_))};
        for (const NodeId& node : nodes) {
            // Ranks are never used twice.
            const auto rank = node == node_of(0) ? 0 : static_cast<std::uint32_t>(joined_);
            view.members.push_back({.node = node, .rank = Rank(rank)});
        }
        engine_.set_view(view);
    }

    static Bytes introduction(ContextId id) {
        return said(wire::ContextBegin{.context = id, .rank = Rank(1), .size = 2});
    }
    static Bytes eager(ContextId id, std::uint64_t sequence, std::size_t bytes) {
        wire::MessageHeader header;
        header.context = id;
        header.sequence = Sequence(sequence);
        header.tag = Tag(7);
        header.size = bytes;
        return said(wire::EagerHeader{header}) + pattern(sequence, bytes);
    }

    /// Messages that arrive, that wait and that are announced, and calls in both directions.
    void exchange(Context& world) {
        link_->arrive(Lane::eager, eager(world.id, 0, 100));
        link_->arrive(Lane::eager, eager(world.id, 1, 200));
        receive_.content = {&room_, 1};
        receive_.pattern = {.source = Rank(1), .tag = Tag(7)};
        engine_.start(world, receive_);
        wire::Request request;
        request.name = "echo";
        request.size = 64;
        link_->arrive(Lane::rpc, said(request) + pattern(1, 64));
        pump();
        for (SendOperation* const send : {&small_, &large_}) {
            send->to = Rank(1);
            send->tag = Tag(8);
            send->content = {send == &small_ ? &little_ : &much_, 1};
            engine_.start(world, *send);
        }
        call_.to = Rank(1);
        call_.name = "echo";
        call_.content = little_;
        engine_.start(world, call_);
        agree_.what = wire::AgreementKind::shrink;
        agree_.timeout = 60s;
        engine_.start(world, agree_);
        pump();
    }

    /// The other node uses a communicator that this one never makes, and revokes another.
    void talk_early(ContextId id) {
        const ContextId unknown(id.value() + 1'000'000);
        link_->arrive(Lane::eager, introduction(unknown));
        link_->arrive(Lane::eager, eager(unknown, 0, 50));
        link_->arrive(Lane::control,
                      said(wire::Revoke{.context = ContextId(id.value() + 2'000'000)}));
        pump();
    }

    void fail(Context& world, const NodeId& other) {
        link_->go_down(Error(Errc::timed_out, "the peer is silent"));
        pump();
        set_view({node_of(0)});
        engine_.evict(std::array{other}, Epoch(epoch_));
        pump();
        engine_.start(world, late_);
        pump();
        while (engine_.poll_hint()) {
        }
        EXPECT_EQ(engine_.pending(), 0U);
    }

    void pump() {
        while (link_ != nullptr) {
            const auto event = link_->poll_event();
            if (!event) break;
            engine_.handle(*event);
        }
        while (InCall* const call = engine_.calls().poll_call()) {
            engine_.calls().respond(*call, Bytes(32));
        }
        while (engine_.poll_done() != nullptr) {
        }
    }

    BufferPool pool_;
    Engine engine_;
    Function function_{};
    FakeLink* link_ = nullptr;
    TimePoint now_{};
    std::uint64_t joined_ = 0;
    std::uint64_t epoch_ = 0;
    Bytes memory_ = Bytes(4096);
    port::Bytes room_{memory_};
    Bytes content_ = pattern(3, 3000);
    port::ConstBytes little_{std::span(content_).first(100)};
    port::ConstBytes much_{content_};
    ReceiveOperation receive_{};
    ProbeOperation late_{};
    SendOperation small_{};
    SendOperation large_{};
    CallOperation call_{};
    AgreeOperation agree_{};
};

TEST(Churn, survivor_does_not_grow_when_members_come_and_go) {
    constexpr std::size_t kWarmUp = 50;
    constexpr std::size_t kCycles = 400;
    Churn churn;
    for (std::size_t i = 0; i < kWarmUp; ++i) churn.cycle();
    const std::size_t before = nexar::testing::Allocations::in_use();
    for (std::size_t i = 0; i < kCycles; ++i) {
        churn.cycle();
        ASSERT_LE(churn.engine().peers(), 2U);
    }
    const std::size_t after = nexar::testing::Allocations::in_use();
    const auto grown = static_cast<double>(after) - static_cast<double>(before);
    // The node id of each former member is kept, for the errors of later calls.
    EXPECT_LT(grown / kCycles, 64.0) << "bytes per member that came and went";
}

}  // namespace
}  // namespace nexar::engine
