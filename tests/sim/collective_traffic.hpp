#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "cluster.hpp"
#include "collective_call.hpp"
#include "schedule/choice.hpp"

namespace nexar::testing {

/// Collectives between all ranks of a cluster. A successful call is checked at once; then its
/// memory is overwritten and must not change again.
class CollectiveTraffic {
public:
    /// The cluster must outlive this object. When this object is destroyed, the cluster must be
    /// closed or have no pending call.
    CollectiveTraffic(EngineCluster& cluster, std::uint64_t seed);

    /// Call this before the first collective.
    void set_profile(const schedule::Profile& profile);

    /// Adds a call that all ranks make after the earlier ones, and returns its number.
    std::size_t add(const CallTerms& terms);

    /// Makes the next call at a rank.
    void start_next(std::size_t rank);
    /// Makes the next call at a rank, and reserves a number for the one after it, which begin()
    /// begins, as v-variants do that exchange counts first.
    void start_and_reserve(std::size_t rank);
    void begin(std::size_t call, std::size_t rank);
    /// Makes the remaining calls of all ranks, each rank at its own pace.
    void start_all();
    /// The same without one rank.
    void start_all_except(std::size_t rank);
    void cancel(std::size_t call, std::size_t rank);

    /// Lets all ranks go on in shared memory as far as they can.
    void poll_memory();
    /// Runs until all started calls have ended; false if they take longer than `at_most`.
    bool run(Duration at_most = std::chrono::minutes(5));
    /// Runs for a while, expects that the memory of ended calls stays untouched, and forgets all
    /// calls.
    void expect_untouched_and_forget();

    /// The error of an ended call at a rank; nullopt if it succeeded.
    const std::optional<Error>& error(std::size_t call, std::size_t rank) const;
    bool ended(std::size_t call, std::size_t rank) const { return at(call, rank).ended; }
    std::size_t calls() const noexcept { return calls_.size(); }
    /// Expects that every call succeeded on every rank.
    void expect_success() const;

    Random& random() noexcept { return random_; }

private:
    struct Started {
        CollectiveTraffic* owner = nullptr;
        std::size_t call = 0;
        std::size_t rank = 0;
        bool started = false;
        bool ended = false;
        std::optional<Error> error{};
        std::unique_ptr<engine::CollectiveOperation> operation{};
    };

    const Started& at(std::size_t call, std::size_t rank) const {
        return *started_[call * cluster_->size() + rank];
    }
    Started& at(std::size_t call, std::size_t rank) {
        return *started_[call * cluster_->size() + rank];
    }
    Started& prepare_next(std::size_t rank);
    std::string text(const Started& one) const;
    void on_done(engine::Operation& done);

    EngineCluster* cluster_;
    Random random_;
    std::vector<std::unique_ptr<CollectiveCall>> calls_;
    std::vector<std::unique_ptr<Started>> started_;  // by call, then rank
    std::vector<std::size_t> next_;                  // the next call of each rank
    std::size_t pending_ = 0;
    /// Ended operations for reuse, because a node reuses its own too.
    std::vector<std::unique_ptr<engine::CollectiveOperation>> spare_;
};

/// All algorithms that can be forced, divided into rounds with at most one algorithm per operation.
class ForcedRounds {
public:
    explicit ForcedRounds(std::size_t world, const schedule::Links& links = {});

    std::size_t size() const noexcept { return rounds_.size(); }
    /// In the format of Profile::forced.
    std::string forced(std::size_t round) const;
    const std::vector<const schedule::Algorithm*>& algorithms(std::size_t round) const {
        return rounds_[round];
    }

private:
    std::vector<std::vector<const schedule::Algorithm*>> rounds_;
};

/// Spreads the ranks over up to four hosts at random; half of the time in blocks.
schedule::Links random_hosts(Random& random, std::size_t world);

/// A random call that uses one of these algorithms.
CallTerms random_call(Random& random, const std::vector<const schedule::Algorithm*>& algorithms,
                      std::size_t world, std::size_t largest_count);

}  // namespace nexar::testing
