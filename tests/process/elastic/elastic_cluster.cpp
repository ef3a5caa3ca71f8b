#include "process/elastic/elastic_cluster.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace nexar::testing {

namespace {

/// The settings of a node in this process; those of `own` replace the usual ones.
Settings local_settings(const Settings& own) {
    std::map<std::string, std::string> all{
        {"formation_timeout", "40s"}, {"collective_timeout", "40s"}, {"on_abort", "error"}};
    for (const auto& [name, value] : own) all[name] = value;
    return {all.begin(), all.end()};
}

Node join_with(const std::string& join_string, std::optional<int> rank, const Settings& own) {
    JoinOptions options;
    options.join_string = join_string;
    options.rank = rank;
    options.settings = local_settings(own);
    return join(options);
}

}  // namespace

std::vector<int> await_failures(const Node& node, std::size_t known) {
    Work<std::vector<int>> failed = node.failures().longer_than(known);
    if (!failed.wait_for(kElasticPatience)) {
        failed.cancel();
        throw std::runtime_error("not in time: more than " + std::to_string(known) + " failures");
    }
    return failed.wait();
}

WorldChange await_change(const Node& node) {
    std::optional<WorldChange> change;
    await("a checkpoint that changes the world", [&] {
        change = node.elastic_checkpoint();
        return change.has_value();
    });
    return *std::move(change);
}

std::jthread in_thread(std::function<void()> body) {
    return std::jthread([body = std::move(body)] {
        try {
            body();
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    });
}

Error failure_of_sums(const Communicator& world) {
    std::optional<Error> failure;
    await("an all-reduce that fails", [&] {
        const auto result = world.all_reduce(1, sum).result();
        if (!result) failure = result.error();
        return failure.has_value();
    });
    return *failure;
}

std::unique_ptr<RunningProgram> ElasticCluster::start_process(const std::string& join_string,
                                                              std::optional<int> rank) const {
    std::vector<std::string> environment{"PATH=/usr/bin:/bin", "NEXAR_JOIN=" + join_string,
                                         "NEXAR_LOG_LEVEL=error", "NEXAR_FORMATION_TIMEOUT=40s",
                                         "NEXAR_COLLECTIVE_TIMEOUT=40s"};
    for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
        if (const char* const value = std::getenv(name)) {
            environment.push_back(std::string(name) + "=" + value);
        }
    }
    std::vector<std::string> arguments;
    if (rank) arguments.push_back(std::to_string(*rank));
    return std::make_unique<RunningProgram>(NEXAR_COMMANDED_RANK, arguments, environment);
}

void ElasticCluster::form(const ElasticShape& shape) {
    SeedOptions options;
    options.listen = "127.0.0.1:0";
    options.world = shape.world;
    options.max_world = shape.max_world;
    options.settings = shape.settings;
    options.settings.emplace_back("failure_budget", "10s");
    seed_.emplace(options);
    const std::string join_string = seed_->create_token({.uses = shape.world});
    for (const int rank : shape.processes) processes_[rank] = start_process(join_string, rank);
    std::map<int, std::future<Node>> joins;
    for (int rank = 0; rank < shape.world; ++rank) {
        if (shape.processes.contains(rank)) continue;
        joins[rank] = std::async(std::launch::async, &join_with, join_string, std::optional(rank),
                                 shape.local);
    }
    for (auto& [rank, joining] : joins) nodes_.emplace(rank, await_value(joining));
    for (const int rank : shape.processes) {
        ASSERT_TRUE(process(rank).writes("joined " + std::to_string(rank) + "\n"))
            << process(rank).errors();
    }
}

void ElasticCluster::tell(int rank, const std::string& command, const std::string& answer) {
    tell(rank, command);
    EXPECT_TRUE(process(rank).writes(answer + "\n"))
        << command << ": " << process(rank).output() << process(rank).errors();
}

void ElasticCluster::kill(int rank) {
    process(rank).send(SIGKILL);
    EXPECT_EQ(process(rank).wait(), 128 + SIGKILL) << process(rank).errors();
}

std::vector<int> ElasticCluster::here() const {
    std::vector<int> ranks;
    for (const auto& [rank, node] : nodes_) ranks.push_back(rank);
    return ranks;
}

void ElasticCluster::on_nodes(const std::function<void(Node&)>& body) {
    std::vector<std::jthread> threads;
    for (auto& entry : nodes_) {
        threads.emplace_back([&body, &entry] {
            try {
                body(entry.second);
            } catch (const std::exception& error) {
                ADD_FAILURE() << "rank " << entry.first << ": " << error.what();
            }
        });
    }
}

std::future<Node> ElasticCluster::join_soon(const Settings& local) {
    return std::async(std::launch::async, &join_with, seed_->create_token(), std::optional<int>(),
                      local);
}

Node& ElasticCluster::keep(std::future<Node>& joining) {
    Node joined = await_value(joining);
    const int rank = joined.rank();
    return nodes_.emplace(rank, std::move(joined)).first->second;
}

int ElasticCluster::start_joiner() {
    auto started = start_process(seed_->create_token(), std::nullopt);
    if (!started->writes("\n") || !started->output().starts_with("joined ")) {
        throw std::runtime_error("a process could not join: " + started->errors());
    }
    const int rank = std::stoi(started->output().substr(std::string("joined ").size()));
    processes_[rank] = std::move(started);
    return rank;
}

void ElasticCluster::await_members(const std::vector<int>& members) {
    await("one list of members on all nodes", [&] {
        return std::ranges::all_of(
            nodes_, [&](const auto& entry) { return entry.second.members() == members; });
    });
}

void ElasticCluster::close(int rank) {
    node(rank).close();
    nodes_.erase(rank);
}

}  // namespace nexar::testing
