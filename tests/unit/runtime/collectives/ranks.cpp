#include "ranks.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace nexar::testing {

namespace {

/// Nodes that tests share. They are closed before the process ends.
class Clusters final : public ::testing::Environment {
public:
    const std::vector<Node>& of(int world) {
        auto found = nodes_.find(world);
        if (found == nodes_.end()) found = nodes_.emplace(world, local_cluster(world)).first;
        return found->second;
    }
    void TearDown() override { nodes_.clear(); }

private:
    std::map<int, std::vector<Node>> nodes_;
};

// Owned by GoogleTest. It must be registered before any test runs.
Clusters* const shared_clusters = [] {
    auto* const made = new Clusters;
    ::testing::AddGlobalTestEnvironment(made);
    return made;
}();

[[noreturn]] void end_hang(const char* what) {
    std::fprintf(stderr, "%s; ending the process because it cannot clean up\n", what);
    std::abort();
}

/// Threads that are joined with a timeout.
class Crew {
public:
    void add(std::function<void()> body) {
        {
            const std::lock_guard lock(mutex_);
            ++running_;
        }
        threads_.emplace_back([this, body = std::move(body)] {
            try {
                body();
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
            const std::lock_guard lock(mutex_);
            --running_;
            changed_.notify_all();
        });
    }
    void join() {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, kHang, [this] { return running_ == 0; })) {
            end_hang("the thread of a rank hangs");
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t running_ = 0;
    std::vector<std::jthread> threads_;
};

}  // namespace

std::vector<Communicator> worlds_of(const std::vector<Node>& nodes) {
    std::vector<Communicator> ranks;
    ranks.reserve(nodes.size());
    for (const Node& node : nodes) ranks.push_back(node.world());
    return ranks;
}

std::vector<Communicator> fresh_ranks(int world) {
    auto ranks = worlds_of(shared_clusters->of(world));
    for (Communicator& rank : ranks) rank = rank.duplicate();
    return ranks;
}

void await_end(detail::Task& task) {
    auto deadline = std::chrono::steady_clock::now() + kHang;
    if (detail::wait(task, &deadline)) return;
    ADD_FAILURE() << "an operation hangs";
    detail::cancel(task);
    deadline = std::chrono::steady_clock::now() + kHang / 6;
    if (!detail::wait(task, &deadline)) end_hang("an operation cannot be cancelled");
}

std::vector<Result<void>> outcomes(std::vector<Work<>>& works) {
    std::vector<Result<void>> all;
    all.reserve(works.size());
    for (Work<>& work : works) all.push_back(outcome(work));
    return all;
}

void expect_success(std::vector<Work<>>& works) {
    const auto all = outcomes(works);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (!all[rank]) ADD_FAILURE() << "rank " << rank << ": " << all[rank].error().what();
    }
}

std::string code_name(const Result<void>& result) {
    return result ? "success" : std::string(name(result.error().code()));
}

std::vector<Work<>> start_all(std::vector<Communicator>& ranks, const Start& start) {
    static std::atomic<std::size_t> calls = 0;
    const std::size_t shift = calls++;
    const bool backwards = shift % 2 == 1;
    std::vector<Work<>> works(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const std::size_t turned = (i + shift / 2) % ranks.size();
        const std::size_t rank = backwards ? ranks.size() - 1 - turned : turned;
        works[rank] = start(ranks[rank], rank);
    }
    return works;
}

void run(std::vector<Communicator>& ranks, const Start& start) {
    auto works = start_all(ranks, start);
    expect_success(works);
}

void expect_usable(std::vector<Communicator>& ranks) {
    auto values = inputs<std::int64_t>(Values::distinct, 4711, ranks.size(), 100);
    const auto want = folded(ReduceOp::sum, values);
    run(ranks, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(std::span(values[rank]), sum);
    });
    expect_everywhere(values, want);
}

void on_every_rank(std::vector<Communicator>& ranks,
                   const std::function<void(Communicator&, std::size_t)>& body) {
    Crew crew;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        crew.add([&body, &ranks, rank] { body(ranks[rank], rank); });
    }
    crew.join();
}

std::string world_name(const ::testing::TestParamInfo<int>& world) {
    return "world_" + std::to_string(world.param);
}

}  // namespace nexar::testing
