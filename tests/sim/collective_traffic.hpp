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

/// Collectives between all ranks of a cluster. What ended well is checked at once; then its memory
/// is overwritten, and must stay so.
class CollectiveTraffic {
public:
    /// The cluster must outlive it, and be closed or have nothing under way when it goes.
    CollectiveTraffic(EngineCluster& cluster, std::uint64_t seed);

    /// Before the first call.
    void set_profile(const schedule::Profile& profile);

    /// A call that all ranks will make, after those that were added before; its number.
    std::size_t add(const CallTerms& terms);

    /// Makes the next call at a rank.
    void start_next(std::size_t rank);
    /// The calls of all ranks, each at its own pace.
    void start_all();
    /// Those of all but one.
    void start_all_but(std::size_t rank);
    void cancel(std::size_t call, std::size_t rank);

    /// Goes on until everything that was started has ended; whether it has.
    bool run(Duration at_most = std::chrono::minutes(5));
    /// Goes on for a while, in which nobody may touch memory of what ended, and forgets all calls.
    void expect_untouched_and_forget();

    /// How a call ended at a rank; none: with success.
    const std::optional<Error>& error(std::size_t call, std::size_t rank) const;
    bool ended(std::size_t call, std::size_t rank) const { return at(call, rank).ended; }
    std::size_t calls() const noexcept { return calls_.size(); }
    /// Every call ended with success everywhere.
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
    std::string text(const Started& one) const;
    void on_done(engine::Operation& done);

    EngineCluster* cluster_;
    Random random_;
    std::vector<std::unique_ptr<CollectiveCall>> calls_;
    std::vector<std::unique_ptr<Started>> started_;  // by call, then rank
    std::vector<std::size_t> next_;                  // call of each rank
    std::size_t under_way_ = 0;
    /// Operations are used again, as those of a node are.
    std::vector<std::unique_ptr<engine::CollectiveOperation>> spare_;
};

/// The algorithms of each operation that can be forced, one of each operation at a time: as many
/// rounds as the operation with the most algorithms has.
class ForcedRounds {
public:
    explicit ForcedRounds(std::size_t world);

    std::size_t size() const noexcept { return rounds_.size(); }
    /// As Profile::forced wants it.
    std::string forced(std::size_t round) const;
    const std::vector<const schedule::Algorithm*>& algorithms(std::size_t round) const {
        return rounds_[round];
    }

private:
    std::vector<std::vector<const schedule::Algorithm*>> rounds_;
};

/// A few draws of calls of these algorithms.
CallTerms random_call(Random& random, const std::vector<const schedule::Algorithm*>& algorithms,
                      std::size_t world, std::size_t largest_count);

}  // namespace nexar::testing
