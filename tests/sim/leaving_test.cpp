#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "cluster.hpp"
#include "support/pattern.hpp"

// A sender leaves as soon as its send has ended; the message must still be received.
namespace nexar::testing {
namespace {

using engine::Pattern;
using engine::ProbeOperation;
using engine::ReceiveOperation;
using engine::SendOperation;
using namespace std::chrono_literals;

constexpr std::size_t kReceiver = 0;
constexpr std::size_t kSender = 2;
constexpr Tag kTag{7};
constexpr std::size_t kHead = wire::kBulkHeadBytes;

constexpr std::array<std::size_t, 12> kSizes{0,       1,         16'384,     16'385,
                                             kHead,   kHead + 1, kHead + 25, 100'000,
                                             131'072, 132'000,   200'001,    1 << 20};

enum class How : std::uint8_t {
    receive,
    receive_from_anybody,
    probe,
    matched_probe,
    matched_probe_before_it_left,
};
constexpr std::array kHows{How::receive, How::receive_from_anybody, How::probe, How::matched_probe,
                           How::matched_probe_before_it_left};

/// Three nodes; the last one sends one message to the first.
template <class Cluster>
class Departure {
public:
    Departure(std::uint64_t seed, std::size_t bytes)
        : cluster_(seed, 3), content_(pattern(seed, bytes)), into_(bytes) {
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            cluster_.node(i).on_done = [this](engine::Operation& one) { ended_.insert(&one); };
        }
    }
    ~Departure() { cluster_.close(); }
    Departure(const Departure&) = delete;
    Departure& operator=(const Departure&) = delete;

    bool connect() { return cluster_.connect(); }

    void send() {
        region_ = content_;
        send_.to = Rank(kReceiver);
        send_.tag = kTag;
        send_.content = {&region_, 1};
        start(kSender, send_);
    }
    bool sent() const { return ended(send_) && !send_.error; }

    /// Closes the sender's node once its send has ended.
    void leave_when_sent() {
        ASSERT_TRUE(run_until([&] { return ended(send_); }));
        ASSERT_FALSE(send_.error) << send_.error->what();
        cluster_.node(kSender).engine().close();
        cluster_.node(kSender).settle();
        ASSERT_TRUE(run_until([&] { return cluster_.node(kSender).engine().idle(); }));
        // The receiver notices that the link is down.
        ASSERT_TRUE(run_until([&] { return !cluster_.node(kReceiver).downs().empty(); }));
    }

    void take_message() {
        match_.pattern = {.source = Rank(kSender), .tag = kTag};
        match_.only_take = true;
        start(kReceiver, match_);
        ASSERT_TRUE(run_until([&] { return ended(match_); }));
        ASSERT_FALSE(match_.error) << match_.error->what();
        EXPECT_EQ(match_.envelope.bytes, content_.size());
    }

    void probe() {
        probe_.pattern = {.source = {}, .tag = kTag};
        start(kReceiver, probe_);
        ASSERT_TRUE(run_until([&] { return ended(probe_); }));
        ASSERT_FALSE(probe_.error) << probe_.error->what();
        EXPECT_EQ(probe_.envelope.bytes, content_.size());
    }

    void post_receive(How how) {
        place_ = into_;
        receive_.content = {&place_, 1};
        receive_.pattern = {.source = Rank(kSender), .tag = kTag};
        if (how == How::receive_from_anybody) receive_.pattern = {};
        if (match_.message != nullptr) {
            cluster_.node(kReceiver).engine().start(*match_.message, receive_);
            cluster_.node(kReceiver).settle();
        } else {
            start(kReceiver, receive_);
        }
    }

    void expect_received() {
        ASSERT_TRUE(run_until([&] { return ended(receive_); }));
        ASSERT_FALSE(receive_.error) << receive_.error->what();
        EXPECT_EQ(receive_.envelope.bytes, content_.size());
        EXPECT_EQ(receive_.envelope.source, Rank(kSender));
        EXPECT_TRUE(into_ == content_);
    }

    void run_for(Duration time) { cluster_.world().run_for(time); }

private:
    template <class Operation>
    void start(std::size_t node, Operation& operation) {
        cluster_.node(node).engine().start(cluster_.context(node, 0), operation);
        cluster_.node(node).settle();
    }
    bool ended(const engine::Operation& one) const { return ended_.contains(&one); }
    template <class Condition>
    bool run_until(Condition condition) {
        return cluster_.world().run_until(condition, 60s);
    }

    Cluster cluster_;
    std::vector<std::byte> content_;
    std::vector<std::byte> into_;
    port::ConstBytes region_{};
    port::Bytes place_{};
    SendOperation send_;
    ReceiveOperation receive_;
    ReceiveOperation match_;
    ProbeOperation probe_;
    std::set<const engine::Operation*> ended_;
};

template <class Cluster>
void deliver_after_the_sender_left(std::uint64_t seed, std::size_t bytes, How how) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(bytes) + " bytes, way " +
                 std::to_string(static_cast<int>(how)));
    Departure<Cluster> departure(seed, bytes);
    ASSERT_TRUE(departure.connect());
    departure.send();
    if (how == How::matched_probe_before_it_left) departure.take_message();
    departure.run_for(3s);
    // Only the head of a message travels before the match, so a larger send is still pending.
    EXPECT_EQ(departure.sent(), bytes <= kHead);
    const bool leaves_first = departure.sent();
    if (leaves_first) departure.leave_when_sent();
    if (how == How::probe) departure.probe();
    if (how == How::matched_probe) departure.take_message();
    departure.post_receive(how);
    if (!leaves_first) departure.leave_when_sent();
    departure.expect_received();
}

template <class Cluster>
class Leaving : public ::testing::Test {};
using Clusters = ::testing::Types<SimCluster, QuicCluster>;
TYPED_TEST_SUITE(Leaving, Clusters);

TYPED_TEST(Leaving, a_sent_message_is_received_after_its_sender_left) {
    std::uint64_t seed = 1;
    for (const std::size_t bytes : kSizes) {
        for (const How how : kHows) {
            deliver_after_the_sender_left<TypeParam>(seed++, bytes, how);
            if (this->HasFatalFailure()) return;
        }
    }
}

}  // namespace
}  // namespace nexar::testing
