#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nexar/nexar.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace nexar {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr int kSmaller = 16;

/// Sends messages whose receives are already posted and records the order in which they arrive. One
/// thread drives both nodes, so that nothing moves while messages are still being queued.
class PriorityTest : public ::testing::Test {
protected:
    PriorityTest() : nodes_(local_cluster(2, {.progressing = Progressing::user_loop})) {}

    struct Message {
        std::string name;
        std::vector<std::uint32_t> sent;
        std::vector<std::uint32_t> got;
        Work<> send{};
        Work<Status> receive{};
        bool arrived = false;
    };

    void queue(const std::string& name, std::size_t bytes, Priority priority) {
        const auto tag = static_cast<std::uint64_t>(messages_.size());
        auto message = std::make_unique<Message>();
        message->name = name;
        message->sent.resize(bytes / sizeof(std::uint32_t));
        std::iota(message->sent.begin(), message->sent.end(),
                  static_cast<std::uint32_t>(tag * 1'000'003));
        message->got.resize(message->sent.size());
        Communicator to = nodes_[1].world();
        message->receive = to.recv(std::span(message->got), 0, tag);
        Communicator from = nodes_[0].world();
        message->send = from.send(std::span(message->sent), 1, tag, {.priority = priority});
        messages_.push_back(std::move(message));
    }

    /// The names of the messages in the order in which they arrived completely.
    std::vector<std::string> arrivals() {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        std::vector<std::string> order;
        while (order.size() < messages_.size() && std::chrono::steady_clock::now() < deadline) {
            nodes_[0].poll();
            for (const auto& message : messages_) {
                if (message->arrived || !message->receive.done()) continue;
                message->arrived = true;
                order.push_back(message->name);
                message->receive.wait();
                EXPECT_EQ(message->got, message->sent) << message->name;
            }
        }
        return order;
    }

    std::vector<Node> nodes_;
    std::vector<std::unique_ptr<Message>> messages_;
};

// With equal turns every smaller message would arrive before the large one.
TEST_F(PriorityTest, a_large_critical_message_overtakes_smaller_bulk_messages_sent_earlier) {
    for (int i = 0; i < kSmaller; ++i) queue("bulk", kMiB, Priority::bulk);
    queue("critical", 8 * kMiB, Priority::critical);
    const auto order = arrivals();
    ASSERT_EQ(order.size(), messages_.size());
    EXPECT_EQ(order.front(), "critical");
}

TEST_F(PriorityTest, a_large_message_of_the_same_priority_overtakes_nothing) {
    for (int i = 0; i < kSmaller; ++i) queue("bulk", kMiB, Priority::bulk);
    queue("large", 8 * kMiB, Priority::bulk);
    const auto order = arrivals();
    ASSERT_EQ(order.size(), messages_.size());
    EXPECT_EQ(order.back(), "large");
}

TEST_F(PriorityTest, critical_messages_precede_realtime_which_precede_bulk) {
    for (int i = 0; i < kSmaller; ++i) queue("bulk", kMiB, Priority::bulk);
    queue("realtime", 8 * kMiB, Priority::realtime);
    queue("critical", 8 * kMiB, Priority::critical);
    const auto order = arrivals();
    ASSERT_EQ(order.size(), messages_.size());
    EXPECT_EQ(order[0], "critical");
    EXPECT_EQ(order[1], "realtime");
}

// Of several messages that match a receive, the one sent first is received, whatever its priority.
TEST_F(PriorityTest, messages_match_in_send_order_regardless_of_priority) {
    Communicator from = nodes_[0].world();
    Communicator to = nodes_[1].world();
    std::vector<std::uint32_t> bulk(kMiB, 1);
    std::vector<std::uint32_t> critical(kMiB, 2);
    auto first = from.send(std::span(bulk), 1, 5);
    auto second = from.send(std::span(critical), 1, 5, {.priority = Priority::critical});
    std::vector<std::uint32_t> got(kMiB);
    for (const auto& expected : {bulk, critical}) {
        auto receive = to.recv(std::span(got), 0, 5);
        ASSERT_TRUE(receive.wait_for(std::chrono::seconds(60)));
        receive.wait();
        EXPECT_EQ(got, expected);
    }
    wait_all(first, second);
}

}  // namespace
}  // namespace nexar
