#include "runtime/link_offers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "base/buffer_pool.hpp"
#include "support/fake_link.hpp"
#include "support/link_end.hpp"
#include "support/linkless_carrier.hpp"
#include "support/said.hpp"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;
using nexar::testing::FakeLink;
using nexar::testing::said;
using port::Lane;
using ::testing::HasSubstr;

constexpr TimePoint kStart{1h};
constexpr std::size_t kEagerLimit = 256;

NodeId node(std::uint8_t number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes.back() = std::byte{number};
    return NodeId(bytes);
}

/// Invites to the one link that the test plays.
class OneLinkCarrier final : public LinklessCarrier {
public:
    explicit OneLinkCarrier(port::LinkId link) : link_(link) {}

    Result<port::Invitation> invite(TimePoint /*now*/, const Identity& /*peer*/) override {
        return port::Invitation{.link = link_, .bytes = {std::byte{1}}};
    }

private:
    port::LinkId link_;
};

/// A node that has one link to its peer and invites it to a further one.
class LinkOffersOfInviter : public ::testing::Test {
protected:
    LinkOffersOfInviter() : pool_(PoolProfile::inference()), engine_(options(), pool_) {
        further_.pace = {.latency = 1us, .bytes_per_second = 1e10, .eager_bytes = 4096};
        const std::array members{node(0), node(1)};
        world_ = &engine_.add_context(ContextId(7), members, Rank(0));
        first_.come_up();
        pump(kStart);
        first_.arrive(Lane::control, said(wire::Preamble{.lane = wire::Lane::control}));
        first_.arrive(Lane::eager, said(wire::Preamble{.lane = wire::Lane::eager}));
        first_.arrive(Lane::eager, said(wire::ContextBegin{
                                       .context = ContextId(7), .rank = Rank(1), .size = 2}));
        offers_.add("shm", carrier_);
        const View view{
            .members = {{.node = node(0), .rank = Rank(0)}, {.node = node(1), .rank = Rank(1)}}};
        const std::array<std::uint32_t, 2> machines{5, 5};
        offers_.begin(kStart, view, {.cluster = {}, .node = node(0), .incarnation = {}},
                      schedule::Links(machines));
        pump(kStart);
    }
    ~LinkOffersOfInviter() override {
        engine_.close();
        for (FakeLink* link : {&first_, &further_}) {
            if (!link->is_down()) link->go_down(Error(Errc::link_closed, "closed"));
        }
        pump(kStart + 1h);
    }

    static engine::EngineOptions options() {
        engine::EngineOptions options;
        options.eager_limit = kEagerLimit;
        return options;
    }

    void pump(TimePoint now) {
        for (FakeLink* link : {&first_, &further_}) {
            while (const auto event = link->poll_event()) {
                engine_.handle(*event);
                if (link == &further_) offers_.handle(now, *event);
            }
        }
        offers_.turn(now);
        while (engine_.poll_done() != nullptr) {
        }
    }
    void peer_says_ready(TimePoint now) {
        first_.arrive(Lane::control, said(wire::LinkReady{"shm"}));
        pump(now);
    }
    /// Sends a message of this size and returns how many bytes the eager lanes of both links got.
    std::array<std::size_t, 2> send(std::size_t bytes) {
        const std::array before{first_.written(Lane::eager).size(),
                                further_.written(Lane::eager).size()};
        Message& message = messages_.emplace_back();
        message.memory.assign(bytes, std::byte{9});
        message.shown = message.memory;
        message.send.to = Rank(1);
        message.send.content = {&message.shown, 1};
        engine_.start(*world_, message.send);
        pump(kStart);
        return {first_.written(Lane::eager).size() - before[0],
                further_.written(Lane::eager).size() - before[1]};
    }

    BufferPool pool_;
    engine::Engine engine_;
    FakeLink first_{port::LinkId(11), {.cluster = {}, .node = node(1), .incarnation = {}}};
    FakeLink further_{port::LinkId(21), {.cluster = {}, .node = node(1), .incarnation = {}}};
    OneLinkCarrier carrier_{port::LinkId(21)};
    LinkOffers offers_{engine_};
    engine::Context* world_ = nullptr;
    struct Message {
        std::vector<std::byte> memory{};
        port::ConstBytes shown{};
        engine::SendOperation send{};
    };
    std::deque<Message> messages_{};
};

TEST_F(LinkOffersOfInviter, use_the_link_when_both_sides_have_it) {
    further_.come_up();
    pump(kStart);
    EXPECT_FALSE(offers_.settled());
    peer_says_ready(kStart);
    EXPECT_TRUE(offers_.settled());
    EXPECT_TRUE(offers_.has_link(node(1)));
    EXPECT_EQ(offers_.why_not(node(1)), "");
}

TEST_F(LinkOffersOfInviter, wait_for_a_peer_that_is_ready_first) {
    peer_says_ready(kStart);
    EXPECT_FALSE(offers_.settled());
    further_.come_up();
    pump(kStart);
    EXPECT_TRUE(offers_.has_link(node(1)));
}

TEST_F(LinkOffersOfInviter, give_up_a_link_that_the_peer_does_not_confirm_in_three_seconds) {
    further_.come_up();
    pump(kStart);
    EXPECT_EQ(offers_.next_deadline(), kStart + 3s);
    pump(kStart + 3s - 1ns);
    EXPECT_FALSE(offers_.settled());
    pump(kStart + 3s);
    EXPECT_TRUE(offers_.settled());
    EXPECT_FALSE(offers_.has_link(node(1)));
    EXPECT_THAT(offers_.why_not(node(1)), HasSubstr("did not say in time"));
    EXPECT_EQ(offers_.next_deadline(), std::nullopt);
}

TEST_F(LinkOffersOfInviter, use_a_link_that_the_peer_confirms_late) {
    further_.come_up();
    pump(kStart);
    pump(kStart + 3s);
    peer_says_ready(kStart + 4s);
    EXPECT_TRUE(offers_.has_link(node(1)));
    EXPECT_EQ(offers_.why_not(node(1)), "");
}

TEST_F(LinkOffersOfInviter, forget_a_confirmation_that_comes_after_the_link_broke) {
    further_.come_up();
    pump(kStart);
    further_.go_down(Error(Errc::link_closed, "the peer's process has ended"));
    pump(kStart);
    EXPECT_THAT(offers_.why_not(node(1)), HasSubstr("process has ended"));
    peer_says_ready(kStart);
    EXPECT_FALSE(offers_.has_link(node(1)));
}

TEST_F(LinkOffersOfInviter, send_messages_up_to_the_eager_size_of_the_link_on_its_lane) {
    further_.come_up();
    pump(kStart);
    const auto small = send(kEagerLimit);
    EXPECT_GT(small[0], kEagerLimit) << "a small message travels on the lane of the first link";
    const auto header = send(1000);
    EXPECT_LT(header[0], 1000U) << "a larger one has a stream there";
    peer_says_ready(kStart);
    const auto whole = send(4096);
    EXPECT_EQ(whole[0] / 1000, 0U);
    EXPECT_GT(whole[1], 4096U);
    const auto large = send(4097);
    EXPECT_LT(large[1], 1000U);
}

}  // namespace
}  // namespace nexar::runtime
