#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <nexar/nexar.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "process/running_program.hpp"

namespace nexar::testing {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Everything that must happen happens within this time, also under a sanitizer on a busy machine.
inline constexpr std::chrono::seconds kElasticPatience{40};

struct ElasticShape {
    int world = 3;
    std::set<int> processes{};  // ranks that are processes of their own
    int max_world = 0;
    Settings settings{};  // of the cluster
    Settings local{};     // of each node in this process
};

/// Waits until `condition` returns true. Throws if that takes too long; `what` says what is
/// missing.
template <class Condition>
void await(const std::string& what, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kElasticPatience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error("not in time: " + what);
        }
        std::this_thread::yield();
    }
}

/// Waits for the value of a future. Throws if that takes too long.
template <class T>
T await_value(std::future<T>& future) {
    if (future.wait_for(kElasticPatience) != std::future_status::ready) {
        throw std::runtime_error("not in time: the value of a future");
    }
    return future.get();
}

/// Waits until more than `known` members have failed, and returns all that have. Throws if that
/// takes too long.
std::vector<int> await_failures(const Node& node, std::size_t known);

/// Repeats the checkpoint until the world changes. Throws if that takes too long.
WorldChange await_change(const Node& node);

/// Runs `body` in a thread. An exception fails the test.
std::jthread in_thread(std::function<void()> body);

/// A cluster whose ranks are nodes of this process, or processes that the test can kill; see
/// commanded_rank.cpp. The failure budget is so long that only an end that the host reports counts
/// as a failure: a busy machine must not fail a test.
class ElasticCluster : public ::testing::Test {
protected:
    void form(const ElasticShape& shape);

    Seed& seed() { return *seed_; }
    Node& node(int rank) { return nodes_.at(rank); }
    RunningProgram& process(int rank) { return *processes_.at(rank); }
    /// Sends a command to a process, without waiting for its answer.
    void tell(int rank, const std::string& command) { process(rank).type(command + "\n"); }
    /// The same, and waits for `answer`.
    void tell(int rank, const std::string& command, const std::string& answer);
    /// Kills a process and reaps it.
    void kill(int rank);

    /// The ranks of the nodes in this process, ascending.
    std::vector<int> here() const;
    /// Runs `body` for each node in this process, each in a thread of its own. An exception fails
    /// the test.
    void on_nodes(const std::function<void(Node&)>& body);

    /// Joins in a thread, with these settings besides those of all nodes. keep() takes the node
    /// into on_nodes().
    std::future<Node> join_soon(const Settings& local = {});
    Node& keep(std::future<Node>& joining);
    /// Starts a process that joins, and waits until it has joined. Returns its rank.
    int start_joiner();
    /// Waits until every node here knows these members.
    void await_members(const std::vector<int>& members);
    /// Closes a node of this process.
    void close(int rank);

private:
    std::unique_ptr<RunningProgram> start_process(const std::string& join_string,
                                                  std::optional<int> rank) const;

    std::optional<Seed> seed_;
    std::map<int, std::unique_ptr<RunningProgram>> processes_;
    std::map<int, Node> nodes_;
};

/// The error that `call` throws; fails the test if it throws none.
template <class Call>
Error error_of(Call call) {
    try {
        static_cast<void>(call());
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "a call that must fail succeeded";
    return {Errc::closed, "none"};
}

/// Repeats the all-reduce until it fails, and returns its error. Throws if that takes too long.
Error failure_of_sums(const Communicator& world);

}  // namespace nexar::testing
