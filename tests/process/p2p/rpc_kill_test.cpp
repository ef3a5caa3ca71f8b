// Calls between two processes, one of which is killed.

#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

/// Options of a link that soon detects a lost peer.
PairOptions attentive(const std::string& link) {
    PairOptions options{.link = link};
    options.settings.idle_timeout = patience(std::chrono::seconds(3));
    options.settings.keep_alive = options.settings.idle_timeout / 6;
    return options;
}

template <class T>
Error error_of(Work<T>& work) {
    if (!work.wait_until(soon())) return {Errc::timed_out, "the call did not complete"};
    const auto result = work.result();
    return result ? Error(Errc::invalid_argument, "the call returned a value") : result.error();
}

class KilledProcess : public ::testing::TestWithParam<std::string> {};

TEST_P(KilledProcess, a_function_is_stopped_when_its_caller_is_killed) {
    const TestCluster cluster;
    ChildProcess child([&](const Channel& parent) {
        const auto member = join_as_child(cluster, parent, attentive(GetParam()));
        await(parent, "served", kWithin);
        member->node().call<void>(1, "slow").wait();
    });
    const auto member = join_as_parent(cluster, child.channel(), attentive(GetParam()));
    std::promise<void> began;
    std::promise<void> stopped;
    auto slow = member->node().serve("slow", [&](const Call& call) {
        std::promise<void> told;
        const std::stop_callback tell(call.stop, [&] { told.set_value(); });
        began.set_value();
        if (told.get_future().wait_for(kWithin) == std::future_status::ready) stopped.set_value();
    });
    child.channel().say("served");
    ASSERT_EQ(began.get_future().wait_for(kWithin), std::future_status::ready);
    child.kill();
    EXPECT_EQ(stopped.get_future().wait_for(kWithin), std::future_status::ready);
    auto again = member->node().call<void>(0, "any");
    EXPECT_EQ(error_of(again).code(), Errc::link_closed);
    slow.stop();
}

TEST_P(KilledProcess, calls_to_a_killed_process_fail_with_outcome_unknown) {
    const TestCluster cluster;
    ChildProcess child([&](const Channel& parent) {
        const auto member = join_as_child(cluster, parent, attentive(GetParam()));
        const auto slow = member->node().serve("slow", [&](const Call& call) {
            std::promise<void> never;
            parent.say("began");
            never.get_future().wait_for(kWithin);
            return call.argument.size();
        });
        const auto twice = member->node().serve("twice", [](int x) { return 2 * x; });
        parent.say("served");
        await(parent, "leave", kWithin);
    });
    const auto member = join_as_parent(cluster, child.channel(), attentive(GetParam()));
    await(child.channel(), "served", kWithin);
    auto twice = member->node().call<int>(0, "twice", 4);
    EXPECT_EQ(finish(twice, soon()), 8);
    std::vector<Work<std::size_t>> works;
    // Some run in the function, some wait for it, and some are too large to be sent completely.
    for (int i = 0; i < 20; ++i) {
        const std::size_t size = i % 3 == 2 ? std::size_t{4} << 20U : 10;
        works.push_back(member->node().call<std::size_t>(0, "slow", Payload(size)));
    }
    await(child.channel(), "began", kWithin);
    child.kill();
    for (auto& work : works) {
        const Error error = error_of(work);
        EXPECT_EQ(error.code(), Errc::outcome_unknown) << error.what();
        EXPECT_EQ(error.rank(), 0);
    }
    auto again = member->node().call<int>(0, "twice", 4);
    EXPECT_EQ(error_of(again).code(), Errc::link_closed);
}

INSTANTIATE_TEST_SUITE_P(Over, KilledProcess, ::testing::Values("quic", "shm"),
                         [](const auto& link) { return link.param; });

}  // namespace
}  // namespace nexar::testing
