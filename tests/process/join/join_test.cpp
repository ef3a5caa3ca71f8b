// Seed and join through the public API: every node has its own loop and socket.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>

#include "process/join/cluster.hpp"
#include "support/temp_directory.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// The error that a call threw.
template <class Call>
std::string failure(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}

class Worlds : public ::testing::TestWithParam<int> {};

TEST_P(Worlds, form_and_every_pair_is_connected) {
    const int world = GetParam();
    Seed seed(seed_options(world));
    std::vector<Node> nodes = join_all(seed, world);
    std::set<int> ranks;
    for (Node& node : nodes) {
        ranks.insert(node.world().rank());
        ASSERT_EQ(node.peers().size(), static_cast<std::size_t>(world - 1));
        for (const PeerLink& peer : node.peers()) {
            EXPECT_TRUE(peer.connected) << peer.why;
            EXPECT_FALSE(peer.why.empty());
        }
    }
    EXPECT_EQ(ranks.size(), nodes.size());
    EXPECT_TRUE(seed.formed());
    expect_connected(nodes);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Worlds, ::testing::Values(1, 2, 3, 5, 7));

TEST(Join, assigns_the_requested_rank_and_fills_the_others) {
    Seed seed(seed_options(3));
    const std::string join_string = seed.create_token({.uses = 3});
    JoinOptions last;
    last.rank = 2;
    std::vector<std::future<Node>> joins;
    joins.push_back(join_soon(join_string, last));
    joins.push_back(join_soon(join_string));
    joins.push_back(join_soon(join_string));
    std::vector<Node> nodes = all_of(joins);
    EXPECT_EQ(nodes[0].world().rank(), 2);
    expect_connected(nodes);
}

TEST(Join, refuses_a_rank_that_is_taken_and_names_its_host) {
    Seed seed(seed_options(2));
    const std::string join_string = seed.create_token({.uses = 3});
    JoinOptions zero;
    zero.rank = 0;
    auto first = join_soon(join_string, zero);
    await_status(seed, "1 of 2 joined");
    auto second = join_soon(join_string, zero);
    const Error error = failure_of(second);
    EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("rank 0"));
    auto third = join_soon(join_string);
    std::vector<Node> nodes;
    nodes.push_back(first.get());
    nodes.push_back(third.get());
    expect_connected(nodes);
}

TEST(Join, refuses_a_rank_outside_the_world) {
    Seed seed(seed_options(2));
    JoinOptions far;
    far.rank = 2;
    auto joining = join_soon(seed.create_token({}), far);
    EXPECT_EQ(failure_of(joining).code(), Errc::invalid_argument);
}

TEST(Join, names_the_missing_ranks_when_time_runs_out) {
    Seed seed(seed_options(3));
    const std::string join_string = seed.create_token({.uses = 3});
    auto first = join_soon(join_string, {}, 400ms);
    auto second = join_soon(join_string, {}, 400ms);
    const Error error = failure_of(first);
    EXPECT_EQ(error.code(), Errc::timed_out) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("of 3 joined"));
    EXPECT_EQ(failure_of(second).code(), Errc::timed_out);
}

TEST(Join, reports_that_no_seed_answers) {
    std::string join_string;
    {
        Seed seed(seed_options(2));
        join_string = seed.create_token({});
    }
    auto joining = join_soon(join_string, {}, 300ms);
    const Error error = failure_of(joining);
    EXPECT_EQ(error.code(), Errc::timed_out);
    EXPECT_THAT(error.what(), HasSubstr("seed"));
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1"));
}

TEST(Join, a_cluster_setting_reaches_the_nodes_and_a_conflict_names_both_values) {
    SeedOptions options = seed_options(2);
    options.settings.emplace_back("mesh", "lazy");
    Seed seed(options);
    const std::string join_string = seed.create_token({.uses = 3});
    JoinOptions other;
    other.settings.emplace_back("mesh", "eager");
    auto wrong = join_soon(join_string, other);
    const Error error = failure_of(wrong);
    EXPECT_EQ(error.code(), Errc::bad_config) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("eager"));
    EXPECT_THAT(error.what(), HasSubstr("lazy"));
    EXPECT_THAT(error.what(), HasSubstr("code"));
}

TEST(Join, a_lazy_mesh_connects_when_something_is_sent) {
    SeedOptions options = seed_options(3);
    options.settings.emplace_back("mesh", "lazy");
    // Members that observe each other connect at once.
    options.settings.emplace_back("failure_budget", "off");
    Seed seed(options);
    std::vector<Node> nodes = join_all(seed, 3);
    for (const Node& node : nodes) {
        EXPECT_TRUE(std::ranges::none_of(node.peers(), &PeerLink::connected));
    }
    std::ranges::sort(nodes, {}, [](const Node& node) { return node.world().rank(); });
    int value = 42;
    nodes[0].world().send(std::span(&value, 1), 2, 1).wait();
    int got = 0;
    auto receive = nodes[2].world().recv(std::span(&got, 1), 0, 1);
    ASSERT_TRUE(receive.wait_for(kPatience));
    receive.wait();
    EXPECT_EQ(got, 42);
    EXPECT_TRUE(nodes[0].peers()[1].connected);
    EXPECT_FALSE(nodes[0].peers()[0].connected);
    // Both ends dial at the same time: one link remains, and nothing is lost.
    expect_connected(nodes);
}

TEST(Join, an_abort_reaches_members_of_a_lazy_mesh_and_the_seed) {
    SeedOptions options = seed_options(4);
    options.settings.emplace_back("mesh", "lazy");
    Seed seed(options);
    const std::string join_string = seed.create_token({.uses = 4});
    JoinOptions returns;
    returns.settings.emplace_back("on_abort", "error");
    std::vector<std::future<Node>> joins;
    for (int i = 0; i < 4; ++i) joins.push_back(join_soon(join_string, returns));
    std::vector<Node> nodes = all_of(joins);
    EXPECT_FALSE(seed.aborted());
    const Communicator aborting = nodes[1].world();
    // No ranks are connected, and none waits for the rank that aborts.
    aborting.abort(11, "why");
    for (const Node& node : nodes) {
        int got = 0;
        auto receive = node.world().recv(std::span(&got, 1), any_source);
        ASSERT_TRUE(receive.wait_for(kPatience));
        const auto result = receive.result();
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code(), Errc::aborted) << result.error().what();
        EXPECT_EQ(result.error().abort_code(), 11);
    }
    ASSERT_TRUE(seed.aborted());
    EXPECT_EQ(seed.aborted()->rank(), aborting.rank());
    EXPECT_EQ(seed.aborted()->abort_code(), 11);
}

TEST(Join, simultaneous_first_sends_leave_one_link) {
    for (int round = 0; round < 10; ++round) {
        SeedOptions options = seed_options(2);
        options.settings.emplace_back("mesh", "lazy");
        Seed seed(options);
        std::vector<Node> nodes = join_all(seed, 2);
        expect_connected(nodes);
    }
}

TEST(Seed, remembers_its_cluster_and_members_after_a_restart) {
    const TempDirectory directory;
    SeedOptions options = seed_options(2);
    options.state_dir = directory.path() + "/state";
    auto seed = std::make_unique<Seed>(options);
    const std::string address = seed->addresses().front();
    const std::string join_string = seed->create_token({.uses = 1});
    auto first = join_soon(join_string);
    await_status(*seed, "1 of 2 joined");

    seed.reset();
    options.listen = address;
    Seed again(options);
    // The first node returns by itself; its token stays spent.
    auto replay = join_soon(join_string);
    EXPECT_EQ(failure_of(replay).code(), Errc::unauthenticated);
    auto second = join_soon(again.create_token({}));
    std::vector<Node> nodes;
    nodes.push_back(first.get());
    nodes.push_back(second.get());
    expect_connected(nodes);
}

/// Captures the log during its lifetime.
class LogLines {
public:
    LogLines() {
        set_log_sink([this](const LogRecord& record) {
            const std::lock_guard lock(mutex_);
            lines_.emplace_back(record.text);
        });
    }
    LogLines(const LogLines&) = delete;
    LogLines& operator=(const LogLines&) = delete;
    ~LogLines() { set_log_sink({}); }

    std::ptrdiff_t count(std::string_view text) const {
        const std::lock_guard lock(mutex_);
        return std::ranges::count_if(
            lines_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
    }
    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return lines_.size();
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

TEST(Seed, logs_a_joiner_of_a_full_world_once_and_the_joiner_reports_that_it_is_full) {
    const LogLines log;
    SeedOptions options = seed_options(2);
    options.max_world = 2;
    Seed seed(options);
    const std::vector<Node> nodes = join_all(seed, 2);
    auto third = join_soon(seed.create_token({}), {}, 1500ms);
    const Error error = failure_of(third);
    EXPECT_EQ(error.code(), Errc::timed_out);
    EXPECT_THAT(error.what(),
                HasSubstr("the cluster is complete: 2 of at most 2 members are in use until one "
                          "leaves"));
    EXPECT_EQ(log.count("was rejected"), 1);
}

TEST(Seed, logs_once_that_it_cannot_write_and_once_that_it_can_again) {
    const TempDirectory directory;
    SeedOptions options = seed_options(2);
    options.state_dir = directory.path() + "/state";
    Seed seed(options);
    const std::string join_string = seed.create_token({.uses = 2});
    const LogLines log;
    // The seed cannot replace its file, as on a full disk.
    const std::filesystem::path file = options.state_dir + "/seed";
    const auto block = [&] {
        std::error_code code;
        std::filesystem::remove(file, code);
        return std::filesystem::create_directory(file, code);
    };
    await(block, "the seed writes its file too often");  // the first turn may write once more
    std::vector<std::future<Node>> joins;
    joins.push_back(join_soon(join_string));
    joins.push_back(join_soon(join_string));
    await([&] { return log.count("cannot write its state") > 0; }, "the failure was not logged");
    std::this_thread::sleep_for(1200ms);  // meanwhile a second attempt fails and is not logged
    EXPECT_EQ(log.size(), 1U);
    std::filesystem::remove(file);
    std::vector<Node> nodes = all_of(joins);
    expect_connected(nodes);
    EXPECT_EQ(log.count("cannot write its state"), 1);
    EXPECT_EQ(log.count("can write its state again"), 1);
}

TEST(Join, removes_the_join_string_from_the_environment_and_remembers_it) {
    Seed seed(seed_options(1));
    const std::string join_string = seed.create_token({.uses = 2});
    ::setenv("NEXAR_JOIN", join_string.c_str(), 1);
    for (int round = 0; round < 2; ++round) {
        Node node = join();
        EXPECT_EQ(::getenv("NEXAR_JOIN"), nullptr);
        node.close();
        await_status(seed, "0 of 1 joined");
    }
    // The token has no uses left, so this error shows that join() used the remembered string.
    EXPECT_THAT(failure([] { join(); }), HasSubstr("already used"));
    // A new join string replaces it.
    ::setenv("NEXAR_JOIN", seed.create_token({}).c_str(), 1);
    EXPECT_NO_THROW(join());
}

TEST(Seed, keeps_its_keys_private) {
    const TempDirectory directory;
    SeedOptions options = seed_options(1);
    options.state_dir = directory.path() + "/state";
    const Seed seed(options);
    using std::filesystem::perms;
    const auto others = perms::group_all | perms::others_all;
    EXPECT_EQ(std::filesystem::status(options.state_dir).permissions() & others, perms::none);
    for (const auto& entry : std::filesystem::directory_iterator(options.state_dir)) {
        EXPECT_EQ(entry.status().permissions() & others, perms::none) << entry.path();
    }
    // A second seed on the same state directory is refused.
    EXPECT_THROW(Seed{options}, Error);
}

TEST(Seed, does_not_start_from_a_directory_that_others_can_read) {
    const TempDirectory directory;
    SeedOptions options = seed_options(1);
    options.state_dir = directory.path() + "/state";
    {
        const Seed seed(options);
    }
    using std::filesystem::perms;
    std::filesystem::permissions(options.state_dir, perms::owner_all | perms::group_read);
    try {
        const Seed seed(options);
        FAIL() << "the seed started";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_config);
        EXPECT_THAT(error.what(), HasSubstr("chmod 0700"));
    }
}

TEST(Seed, refuses_a_world_that_no_view_can_hold) {
    const auto refusal = [](int world, int most) {
        SeedOptions options = seed_options(world);
        options.max_world = most;
        return failure([&] { const Seed seed(options); });
    };
    for (const int world : {-1, 0, 16385}) {
        EXPECT_THAT(refusal(world, 0), HasSubstr("a cluster of " + std::to_string(world) +
                                                 " members was requested; allowed: 1 to 16384"));
    }
    for (const int most : {-1, 3, 16385}) {
        EXPECT_THAT(refusal(4, most), HasSubstr("a cluster of 4 members cannot be limited to " +
                                                std::to_string(most) + "; allowed: 4 to 16384"));
    }
    EXPECT_EQ(refusal(16384, 16384), "nothing");
}

TEST(Seed, begins_a_new_world_when_the_last_member_has_left) {
    Seed seed(seed_options(2));
    for (int round = 0; round < 3; ++round) {
        std::vector<Node> nodes = join_all(seed, 2);
        expect_connected(nodes);
    }
}

TEST(Seed, may_end_while_its_members_continue) {
    auto seed = std::make_unique<Seed>(seed_options(3));
    std::vector<Node> nodes = join_all(*seed, 3);
    seed.reset();
    expect_connected(nodes);
}

TEST(JobSecret, admits_every_process_that_knows_it) {
    SeedOptions options = seed_options(2);
    options.job_secret = "0123456789abcdef0123456789abcdef";
    EXPECT_NO_THROW(Seed{options});
    options.job_secret = "too short";
    EXPECT_THROW(Seed{options}, Error);
}

}  // namespace
}  // namespace nexar::testing
