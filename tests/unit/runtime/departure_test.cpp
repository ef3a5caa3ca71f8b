// Ranks that leave: messages whose send has completed are still received, and the last remaining
// rank can still send to itself.

#include <gtest/gtest.h>

#include <array>
#include <nexar/nexar.hpp>
#include <string>
#include <vector>

namespace nexar {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::size_t, 10> kSizes{0,      1,       16'384,  16'385,  65'536,
                                             65'537, 100'000, 131'072, 132'000, 1 << 20};

std::vector<std::uint8_t> content_of(std::size_t bytes) {
    std::vector<std::uint8_t> content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        content[i] = static_cast<std::uint8_t>((i * 7 + i / 251 + bytes) % 256);
    }
    return content;
}

enum class How : std::uint8_t { receive, receive_any, probe, matched_probe, matched_before };
constexpr std::array kHows{How::receive, How::receive_any, How::probe, How::matched_probe,
                           How::matched_before};

Work<Status> receive(Communicator& world, std::span<std::uint8_t> into, How how, Message& matched) {
    if (how == How::receive_any) return world.recv(into, any_source, any_tag);
    if (how == How::matched_before) return std::move(matched).recv(into);
    if (how == How::matched_probe) return world.matched_probe(any_source, 7).wait().recv(into);
    if (how == How::probe) {
        EXPECT_EQ(world.probe(2, 7).wait().bytes, into.size());
    }
    return world.recv(into, 2, 7);
}

TEST(Departure, messages_whose_send_has_completed_are_not_lost) {
    for (const How how : kHows) {
        SCOPED_TRACE("way " + std::to_string(static_cast<int>(how)));
        auto nodes = local_cluster(3);
        Communicator receiver = nodes[0].world();
        Communicator base = nodes[2].world();
        std::vector<std::vector<std::uint8_t>> sent;
        for (const std::size_t bytes : kSizes) sent.push_back(content_of(bytes));
        // One communicator for each message, so that none waits for another.
        std::vector<Communicator> theirs;
        std::vector<Communicator> ours;
        std::vector<Work<>> sends;
        std::vector<Message> matched(sent.size());
        for (std::size_t i = 0; i < sent.size(); ++i) {
            theirs.push_back(base.duplicate());
            ours.push_back(receiver.duplicate());
            sends.push_back(theirs[i].send(std::span(sent[i]), 0, 7));
            if (how == How::matched_before) matched[i] = ours[i].matched_probe(2, 7).wait();
        }
        // By this deadline every send that can complete without a posted receive has completed.
        std::vector<std::vector<std::uint8_t>> got(sent.size());
        std::vector<Work<Status>> receives(sent.size());
        const auto deadline = std::chrono::steady_clock::now() + 100ms;
        for (std::size_t i = 0; i < sent.size(); ++i) {
            got[i].resize(sent[i].size());
            if (sends[i].wait_until(deadline)) continue;
            receives[i] = receive(ours[i], got[i], how, matched[i]);
        }
        wait_all(std::span(sends));
        nodes[2].close();
        for (std::size_t i = 0; i < sent.size(); ++i) {
            SCOPED_TRACE(std::to_string(sent[i].size()) + " bytes");
            if (!receives[i].valid()) receives[i] = receive(ours[i], got[i], how, matched[i]);
            const auto status = receives[i].result();
            ASSERT_TRUE(status.has_value()) << status.error().what();
            EXPECT_EQ(*status, (Status{.source = 2, .tag = 7, .bytes = sent[i].size()}));
            EXPECT_EQ(got[i], sent[i]);
        }
    }
}

/// Rank 2 calls a collective first and leaves as soon as its part has completed.
void expect_result_after_departure(std::size_t count,
                                   Work<> (*start)(Communicator&, std::span<std::uint32_t>)) {
    SCOPED_TRACE(std::to_string(count * sizeof(std::uint32_t)) + " bytes");
    auto nodes = local_cluster(3);
    std::vector<std::vector<std::uint32_t>> values(3, std::vector<std::uint32_t>(count));
    for (std::size_t rank = 0; rank < 3; ++rank) {
        for (std::size_t i = 0; i < count; ++i) {
            values[rank][i] = static_cast<std::uint32_t>((rank + 1) * 1'000'003 + i);
        }
    }
    std::vector<Work<>> works(3);
    std::vector<Communicator> worlds;
    for (Node& node : nodes) worlds.push_back(node.world());
    works[2] = start(worlds[2], values[2]);
    const bool leaves_first = works[2].wait_for(100ms);
    const auto leave = [&] {
        works[2].wait();
        nodes[2].close();
    };
    if (leaves_first) leave();
    for (std::size_t rank = 0; rank < 2; ++rank) works[rank] = start(worlds[rank], values[rank]);
    if (!leaves_first) leave();
    wait_all(std::span(works));
    const bool broadcasts = values[1][count - 1] == values[2][count - 1];
    for (std::size_t i = 0; i < count; ++i) {
        const auto last = static_cast<std::uint32_t>(3 * 1'000'003 + i);
        const auto sum = static_cast<std::uint32_t>(6 * 1'000'003 + 3 * i);
        ASSERT_EQ(values[0][i], broadcasts ? last : sum) << i;
    }
}

TEST(Departure, completed_parts_of_collectives_are_not_lost) {
    for (const std::size_t count : {1U, 5'001U, 16'384U, 16'385U, 33'000U, 300'001U}) {
        expect_result_after_departure(count, [](Communicator& world, std::span<std::uint32_t> own) {
            return world.broadcast(own, 2);
        });
        expect_result_after_departure(count, [](Communicator& world, std::span<std::uint32_t> own) {
            return world.reduce(own, own, sum, 0);
        });
    }
}

TEST(Departure, messages_arrive_in_a_communicator_created_afterwards) {
    auto nodes = local_cluster(3);
    const auto small = content_of(9'001);
    const auto large = content_of(60'001);
    {
        Communicator theirs = nodes[1].world().duplicate();
        theirs.send(std::span(small), 0, 1).wait();
        theirs.send(std::span(large), 0, 2).wait();
    }
    nodes[1].close();
    Communicator ours = nodes[0].world().duplicate();
    std::vector<std::uint8_t> got(large.size());
    EXPECT_EQ(ours.recv(std::span(got), 1, 2).wait().bytes, large.size());
    EXPECT_EQ(got, large);
    EXPECT_EQ(ours.recv(std::span(got), any_source, 1).wait().bytes, small.size());
}

TEST(Departure, the_last_remaining_rank_can_send_to_itself) {
    auto nodes = local_cluster(3);
    Communicator world = nodes[0].world();
    std::array<int, 1> early{};
    std::array<int, 1> late{};
    auto posted_before = world.recv(std::span(early), any_source, 1);
    auto probed_before = world.probe(any_source, 2);
    auto matched_before = world.matched_probe(any_source, 3);
    auto named = world.recv(std::span(late), 1, 4);
    nodes[1].close();
    nodes[2].close();
    EXPECT_EQ(named.result().error().code(), Errc::link_closed);
    auto posted_after = world.recv(std::span(late), any_source, 5);
    EXPECT_FALSE(posted_after.wait_for(1ms)) << "nothing was sent yet";
    const std::array<int, 1> value{41};
    for (const int tag : {1, 2, 3, 5}) world.send(std::span(value), 0, tag).wait();
    EXPECT_EQ(posted_before.wait().source, 0);
    EXPECT_EQ(early, value);
    EXPECT_EQ(probed_before.wait(), (Status{.source = 0, .tag = 2, .bytes = sizeof(int)}));
    EXPECT_EQ(matched_before.wait().status().tag, 3U);
    EXPECT_EQ(posted_after.wait().source, 0);
    EXPECT_EQ(late, value);
}

// Only the caller could still match such a receive, so nothing but the caller ends it.
TEST(Departure, a_receive_from_any_source_does_not_fail) {
    for (const int size : {1, 3}) {
        auto nodes = local_cluster(size);
        for (std::size_t i = 1; i < nodes.size(); ++i) nodes[i].close();
        std::array<int, 1> got{};
        auto receive = nodes[0].world().recv(std::span(got), any_source);
        EXPECT_FALSE(receive.wait_for(10ms));
        receive.cancel();
        EXPECT_EQ(receive.result().error().code(), Errc::cancelled);
        auto closed = nodes[0].world().probe(any_source);
        nodes[0].close();
        EXPECT_EQ(closed.result().error().code(), Errc::closed);
    }
}

}  // namespace
}  // namespace nexar
