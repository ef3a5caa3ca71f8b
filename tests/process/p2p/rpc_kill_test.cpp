// Calls between processes of which one is killed.

#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

/// A link that notices soon that the other end is gone.
link::LinkSettings attentive() {
    link::LinkSettings link;
    link.idle_timeout = patience(std::chrono::seconds(3));
    link.keep_alive = link.idle_timeout / 6;
    return link;
}

template <class T>
Error error_of(Work<T>& work) {
    if (!work.wait_until(soon())) return {Errc::timed_out, "it did not end at all"};
    const auto result = work.result();
    return result ? Error(Errc::invalid_argument, "it has a value") : result.error();
}

TEST(KilledProcess, that_calls_stops_the_function_that_it_called) {
    const TestCluster cluster;
    ChildProcess child([&](const Channel& parent) {
        const auto member = join_as_child(cluster, parent, attentive());
        await(parent, "served", kWithin);
        member->node().call<void>(1, "slow").wait();
    });
    const auto member = join_as_parent(cluster, child.channel(), attentive());
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

TEST(KilledProcess, that_was_called_ends_every_call_and_says_what_is_known) {
    const TestCluster cluster;
    ChildProcess child([&](const Channel& parent) {
        const auto member = join_as_child(cluster, parent, attentive());
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
    const auto member = join_as_parent(cluster, child.channel(), attentive());
    await(child.channel(), "served", kWithin);
    auto twice = member->node().call<int>(0, "twice", 4);
    EXPECT_EQ(finish(twice, soon()), 8);
    std::vector<Work<std::size_t>> works;
    // In the function, before it, and too large to have gone out as a whole.
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

}  // namespace
}  // namespace nexar::testing
