// How the state of the application reaches processes that join.

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "process/elastic/application_state.hpp"
#include "process/elastic/elastic_cluster.hpp"

namespace nexar::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using State = std::vector<std::byte>;

constexpr std::size_t kLarge = (std::size_t{5} << 20U) + 3;
/// The largest piece of a sender's part, and a bit more.
constexpr std::size_t kMoreThanAPiece = (std::size_t{16} << 20U) + 7;

/// So short that a test may wait until it has passed.
const Settings short_timeouts{{"collective_timeout", "1s"}};

class JoinedState : public ElasticCluster {
protected:
    /// Lets a node send this state.
    static void send_from(const Node& node, State state, int senders) {
        node.on_join({.save = [state = std::move(state)] { return state; }, .senders = senders});
    }

    /// Takes in one process, which gets this rank, and lets it go again. Returns the state that it
    /// has got.
    State join_and_load(int rank) {
        const std::vector<int> before = node(0).members();
        std::vector<int> all = before;
        all.push_back(rank);
        auto joining = join_soon();
        await_members(all);
        std::jthread others([&] { on_nodes([](Node& node) { await_change(node); }); });
        Node joined = await_value(joining);
        std::optional<State> loaded;
        joined.on_join({.load = [&](State state) { loaded = std::move(state); }});
        const Communicator world = joined.world();
        others.join();
        EXPECT_THAT(world.members(), ::testing::ElementsAreArray(all));
        EXPECT_TRUE(loaded.has_value()) << "load was not called";
        joined.close();
        await_members(before);
        on_nodes([](Node& node) { node.world().shrink(); });
        return loaded.value_or(State{});
    }
};

class JoinedStateOfSenders : public JoinedState, public ::testing::WithParamInterface<int> {};

TEST_P(JoinedStateOfSenders, arrives_whole) {
    form({.world = 3});
    int joiner = 3;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, kLarge}) {
        const State state = application_state(size, size + 1);
        for (const int rank : here()) send_from(node(rank), state, GetParam());
        EXPECT_EQ(join_and_load(joiner++), state) << size << " bytes";
    }
}

INSTANTIATE_TEST_SUITE_P(Senders, JoinedStateOfSenders, ::testing::Values(1, 3, 7),
                         ::testing::PrintToStringParamName());

TEST_F(JoinedState, larger_than_a_piece_arrives_whole_from_one_sender_and_from_two) {
    form({.world = 2});
    for (const int senders : {1, 2}) {
        const auto number = static_cast<std::uint64_t>(senders);
        const State state = application_state(number * kMoreThanAPiece, number);
        for (const int rank : here()) send_from(node(rank), state, senders);
        // EXPECT_EQ would print both.
        EXPECT_TRUE(join_and_load(1 + senders) == state) << senders << " senders";
    }
}

TEST_F(JoinedState, arrives_at_all_processes_that_join_together) {
    form({.world = 3});
    const State state = application_state(100'001, 5);
    for (const int rank : here()) send_from(node(rank), state, 2);
    std::vector<std::future<Node>> joining;
    for (int i = 0; i < 3; ++i) joining.push_back(join_soon());
    await_members({0, 1, 2, 3, 4, 5});
    std::jthread others([&] { on_nodes([](Node& node) { await_change(node); }); });
    std::vector<std::jthread> threads;
    for (auto& one : joining) {
        threads.push_back(in_thread([&one, &state] {
            const Node joined = await_value(one);
            bool same = false;
            joined.on_join({.load = [&](const State& loaded) { same = loaded == state; }});
            EXPECT_EQ(joined.world().size(), 6);
            EXPECT_TRUE(same);
            EXPECT_EQ(joined.world().size(), 6) << "the second call loads nothing";
        }));
    }
}

TEST_F(JoinedState, is_passed_on_by_a_process_that_has_joined) {
    form({.world = 2});
    const State state = application_state(4097, 8);
    for (const int rank : here()) send_from(node(rank), state, 3);
    auto joining = join_soon();
    await_members({0, 1, 2});
    std::jthread others([&] { on_nodes([](Node& node) { await_change(node); }); });
    Node joined = await_value(joining);
    State kept;
    joined.on_join({.save = [&] { return kept; },
                    .load = [&](State loaded) { kept = std::move(loaded); },
                    .senders = 3});
    static_cast<void>(joined.world());
    others.join();
    EXPECT_EQ(kept, state);
    std::promise<Node> promise;
    promise.set_value(std::move(joined));
    auto ready = promise.get_future();
    keep(ready);
    EXPECT_EQ(join_and_load(3), state) << "three ranks have sent it";
}

TEST_F(JoinedState, of_different_sizes_is_an_error_of_the_joiner_and_no_sender_waits) {
    form({.world = 3});
    for (const int rank : here()) {
        const std::size_t size = rank == 1 ? kLarge + 1 : kLarge;
        send_from(node(rank), application_state(size, 1), 3);
    }
    auto joining = join_soon();
    await_members({0, 1, 2, 3});
    std::jthread others([&] { on_nodes([](Node& node) { await_change(node); }); });
    const Node joined = await_value(joining);
    const Error error = error_of([&] { return joined.world(); });
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.what(),
                HasSubstr("rank 0 has 5242883 bytes of state, but rank 1 has 5242884; "
                          "StateHooks::save must return the same on all members"));
}

TEST_F(JoinedState, of_the_same_size_but_with_other_bytes_is_an_error_of_the_joiner) {
    form({.world = 3});
    for (const int rank : here()) {
        State state = application_state(4097, 1);
        if (rank == 1) state.back() ^= std::byte{1};
        send_from(node(rank), state, 2);
    }
    auto joining = join_soon();
    await_members({0, 1, 2, 3});
    std::jthread others([&] { on_nodes([](Node& node) { await_change(node); }); });
    const Node joined = await_value(joining);
    const Error error = error_of([&] { return joined.world(); });
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("rank 0 and rank 1 have different states of 4097 bytes; "
                                        "StateHooks::save must return the same on all members"));
}

TEST_F(JoinedState, is_not_sent_by_grow) {
    form({.world = 2});
    for (const int rank : here()) send_from(node(rank), application_state(100, 1), 2);
    auto joining = join_soon();
    await_members({0, 1, 2});
    std::jthread others([&] { on_nodes([](Node& node) { node.world().grow(); }); });
    const Node joined = await_value(joining);
    joined.on_join({.load = [](const State&) { ADD_FAILURE() << "grow() sends no state"; }});
    EXPECT_EQ(joined.world().size(), 3);
}

TEST_F(JoinedState, sender_that_is_killed_while_it_sends_is_an_error_of_the_joiner) {
    form({.world = 4, .processes = {1}});
    State state = application_state(kLarge, 3);
    std::atomic<bool> go = false;
    node(0).on_join({.save =
                         [&] {
                             // Keeps the joiner from receiving the part of rank 1.
                             await("the go-ahead", [&] { return go.load(); });
                             return state;
                         },
                     .senders = 2});
    for (const int rank : {2, 3}) send_from(node(rank), state, 2);
    tell(1, "state " + std::to_string(kLarge) + " 3 2", "state");
    auto joining = join_soon();
    await_members({0, 1, 2, 3, 4});
    node(2).leave();  // all ranks go on at the first checkpoint
    tell(1, "checkpoint");
    std::jthread others(
        [&] { on_nodes([](Node& node) { EXPECT_TRUE(node.elastic_checkpoint().has_value()); }); });
    ASSERT_TRUE(process(1).writes("saving\n")) << process(1).output();
    const Node joined = await_value(joining);
    kill(1);
    go = true;
    const Error error = error_of([&] { return joined.world(); });
    EXPECT_EQ(error.code(), Errc::membership_changed) << error.what();
    others.join();
    const auto go_on = [](const Node& one) {
        const Communicator world = one.world().shrink();
        EXPECT_THAT(world.members(), ElementsAre(0, 3, 4));
        EXPECT_EQ(world.all_reduce(one.rank(), sum).wait(), 7);
    };
    const std::jthread zero = in_thread([&] { go_on(node(0)); });
    const std::jthread three = in_thread([&] { go_on(node(3)); });
    go_on(joined);
}

TEST_F(JoinedState, joiner_that_is_killed_while_it_receives_leaves_a_world_that_can_shrink) {
    form({.world = 3});
    std::atomic<bool> go = false;
    State state = application_state(kLarge, 3);
    node(0).on_join({.save =
                         [&] {
                             await("the go-ahead", [&] { return go.load(); });
                             return state;
                         },
                     .senders = 2});
    for (const int rank : {1, 2}) send_from(node(rank), state, 2);
    const int joiner = start_joiner();
    await_members({0, 1, 2, joiner});
    tell(joiner, "state " + std::to_string(kLarge) + " 3 2", "state");
    tell(joiner, "world");
    std::jthread others([&] {
        on_nodes([](Node& node) {
            const WorldChange change = await_change(node);
            EXPECT_THAT(change.joined, ElementsAre(3));
            Communicator world = change.new_world;
            EXPECT_EQ(failure_of_sums(world).code(), Errc::membership_changed);
            world = world.shrink();
            EXPECT_THAT(world.members(), ElementsAre(0, 1, 2));
            EXPECT_EQ(world.all_reduce(node.rank(), sum).wait(), 3);
        });
    });
    await("a world of four", [&] { return node(2).world().size() == 4; });
    kill(joiner);
    go = true;
}

TEST_F(JoinedState, that_the_members_do_not_send_is_a_timeout_of_the_joiner) {
    form({.world = 2});
    std::atomic<bool> go = false;
    node(0).on_join({.save = [&] {
        await("the go-ahead", [&] { return go.load(); });
        return application_state(kLarge, 3);
    }});
    send_from(node(1), application_state(kLarge, 3), 1);
    auto joining = join_soon(short_timeouts);
    await_members({0, 1, 2});
    std::jthread others([&] { on_nodes([](Node& node) { await_change(node); }); });
    await("the world with the joiner", [&] { return node(1).world().size() == 3; });
    Node joined = await_value(joining);
    joined.on_join({.load = [](const State&) { ADD_FAILURE() << "it is not complete"; }});
    const Error error = error_of([&] { return joined.world(); });
    EXPECT_EQ(error.code(), Errc::timed_out);
    EXPECT_THAT(error.what(), HasSubstr("the state of the application was not sent within the "
                                        "setting collective_timeout"));
    EXPECT_THAT(joined.world().members(), ElementsAre(0, 1, 2)) << "it is in the world";
    joined.close();
    go = true;
    others.join();
    await_members({0, 1});
    on_nodes([](Node& node) { EXPECT_EQ(node.world().shrink().all_reduce(1, sum).wait(), 2); });
}

TEST_F(JoinedState, that_the_joiner_does_not_receive_does_not_keep_the_members) {
    form({.world = 2, .local = short_timeouts});
    for (const int rank : here()) send_from(node(rank), application_state(kLarge, 3), 2);
    auto joining = join_soon();
    Node joined = await_value(joining);
    await_members({0, 1, 2});
    const auto begun = std::chrono::steady_clock::now();
    on_nodes([](Node& node) { EXPECT_THAT(await_change(node).joined, ElementsAre(2)); });
    EXPECT_LT(std::chrono::steady_clock::now() - begun, kElasticPatience / 2);
    joined.close();
    await_members({0, 1});
    on_nodes([](Node& node) { EXPECT_EQ(node.world().shrink().all_reduce(1, sum).wait(), 2); });
}

TEST_F(JoinedState, needs_at_least_one_sender) {
    form({.world = 1});
    const Error error = error_of([&] {
        node(0).on_join({.senders = 0});
        return 0;
    });
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("0 members cannot send the state"));
}

}  // namespace
}  // namespace nexar::testing
