#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nexar/nexar.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/config.hpp"
#include "base/settings.hpp"
#include "runtime/node_body.hpp"
#include "support/test_cluster.hpp"

namespace nexar {
namespace {

using ::testing::IsEmpty;

constexpr std::chrono::seconds kRecorderPatience(60);

/// Two connected nodes with the setting recorder_events.
class NodeRecorder : public ::testing::Test {
protected:
    void open(const std::string& recorder_events) {
        const Config config =
            Config::resolve(kSettings, {.code = {{"recorder_events", recorder_events}}}).value();
        View view{.epoch = Epoch(1)};
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            bodies_.push_back(
                detail::NodeBody::open(loop_, {.credentials = cluster_.node(rank),
                                               .listen = Address::parse("127.0.0.1:0").value(),
                                               .config = config})
                    .value());
            view.members.push_back({.node = cluster_.node_id(rank),
                                    .incarnation = Incarnation(1),
                                    .rank = Rank(rank),
                                    .addresses = {bodies_.back()->address()}});
            nodes_.emplace_back(bodies_.back());
        }
        for (const auto& body : bodies_) body->form(view);
        for (const auto& body : bodies_) {
            body->wait_formed(body->now() + kRecorderPatience).value();
        }
    }

    /// Rank 0 sends one message, and both ranks meet in a barrier.
    void talk() {
        const std::vector<int> sent{3, 1, 4};
        std::vector<int> got(sent.size());
        auto receive = nodes_[1].world().recv(got, 0, 7);
        nodes_[0].world().send(sent, 1, 7).wait();
        receive.wait();
        ASSERT_EQ(got, sent);
        auto first = nodes_[0].world().barrier();
        nodes_[1].world().barrier().wait();
        first.wait();
    }

    std::vector<RecordedEvent> events(std::size_t rank, EventKind kind) const {
        std::vector<RecordedEvent> found;
        for (const Recorder::Entry& entry : bodies_[rank]->recorder().snapshot().events) {
            if (entry.event.kind == kind) found.push_back(entry.event);
        }
        return found;
    }

    ::nexar::testing::TestCluster cluster_;
    std::shared_ptr<runtime::Loop> loop_ = runtime::make_loop({}).value();
    std::vector<std::shared_ptr<detail::NodeBody>> bodies_;
    std::vector<Node> nodes_;
};

TEST_F(NodeRecorder, keeps_starts_matches_ends_and_links) {
    open("512");
    const TimePoint before = bodies_[0]->now();
    talk();
    const TimePoint after = bodies_[0]->now();

    const auto sends = events(0, EventKind::send_started);
    ASSERT_EQ(sends.size(), 1U);
    EXPECT_EQ(event_subject(sends[0].b), 1U);
    EXPECT_EQ(sends[0].c, 7U);
    EXPECT_EQ(sends[0].d, 3 * sizeof(int));
    EXPECT_GE(sends[0].time, before) << "the time of the call, not of the turn before it";
    EXPECT_LE(sends[0].time, after);
    EXPECT_EQ(events(0, EventKind::send_ended).size(), 1U);
    const auto matches = events(1, EventKind::message_matched);
    ASSERT_EQ(matches.size(), 1U);
    EXPECT_EQ(event_subject(matches[0].b), 0U);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(events(rank, EventKind::link_up).size(), 2U) << "QUIC and shared memory";
        const auto ends = events(rank, EventKind::collective_ended);
        ASSERT_EQ(ends.size(), 1U);
        EXPECT_EQ(event_detail(ends[0].b), 0U) << "without an error";
    }
}

TEST_F(NodeRecorder, overwrites_the_oldest_events_when_the_ring_is_full) {
    open("8");
    for (int round = 0; round < 20; ++round) talk();
    const Recorder::Snapshot snapshot = bodies_[0]->recorder().snapshot();
    EXPECT_GT(snapshot.overwritten, 0U);
    std::map<unsigned, int> kept;  // by thread
    for (const Recorder::Entry& entry : snapshot.events) ++kept[entry.thread];
    ASSERT_FALSE(kept.empty());
    for (const auto& [thread, count] : kept) EXPECT_LE(count, 8) << "thread " << thread;
}

TEST_F(NodeRecorder, shows_that_a_checkpoint_without_changes_is_one_collective) {
    open("512");
    const auto pass_checkpoints = [this](std::size_t rank) {
        for (int i = 0; i < 10; ++i) EXPECT_FALSE(nodes_[rank].elastic_checkpoint().has_value());
    };
    std::jthread other([&] { pass_checkpoints(1); });
    pass_checkpoints(0);
    other.join();
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(events(rank, EventKind::collective_started).size(), 10U);
        EXPECT_THAT(events(rank, EventKind::agreement_started), IsEmpty());
        EXPECT_THAT(events(rank, EventKind::send_started), IsEmpty());
    }
}

TEST_F(NodeRecorder, keeps_nothing_when_turned_off) {
    open("0");
    talk();
    EXPECT_THAT(bodies_[0]->recorder().snapshot().events, IsEmpty());
}

}  // namespace
}  // namespace nexar
