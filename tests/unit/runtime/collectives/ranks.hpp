#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nexar/nexar.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/collective_data.hpp"
#include "support/sanitized.hpp"

namespace nexar::testing {

/// An operation that takes longer is considered hung.
inline constexpr std::chrono::seconds kHang{kSanitized ? 240 : 60};

/// The ranks of a communicator that no other test uses; element i is rank i. They run on nodes of
/// this process, connected over QUIC, that all tests of this world size share.
std::vector<Communicator> fresh_ranks(int world);
/// The ranks of the world of these nodes, which the test may close.
std::vector<Communicator> worlds_of(const std::vector<Node>& nodes);

/// Fails the test when the Work does not complete. Ends the process when it does not complete even
/// after cancel(): its memory is still in use, so it cannot be dropped.
void await_end(detail::Task& task);

template <class T>
Result<T> outcome(Work<T>& work) {
    await_end(*work.task());
    return work.result();
}
template <class T>
Result<T> outcome(Work<T>&& work) {
    await_end(*work.task());
    return work.result();
}

/// Waits for all; element i belongs to rank i.
void expect_success(std::vector<Work<>>& works);
std::vector<Result<void>> outcomes(std::vector<Work<>>& works);

/// "success" or the name of the code.
std::string code_name(const Result<void>& result);

/// Calls `start(communicator, rank)` for every rank, in a different order each time, without
/// waiting.
using Start = std::function<Work<>(Communicator&, std::size_t)>;
std::vector<Work<>> start_all(std::vector<Communicator>& ranks, const Start& start);
void run(std::vector<Communicator>& ranks, const Start& start);

/// Checks with a small sum that the communicator still works.
void expect_usable(std::vector<Communicator>& ranks);

/// Calls `body(communicator, rank)` in one thread per rank and waits for all of them. For bodies
/// that block. An exception fails the test.
void on_every_rank(std::vector<Communicator>& ranks,
                   const std::function<void(Communicator&, std::size_t)>& body);

/// Every rank has the result `want`.
template <Element T>
void expect_everywhere(const PerRank<T>& got, const std::vector<T>& want) {
    for (std::size_t rank = 0; rank < got.size(); ++rank) EXPECT_TRUE(same(rank, got[rank], want));
}
/// Rank i has the result want[i].
template <Element T>
void expect_each(const PerRank<T>& got, const PerRank<T>& want) {
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
        EXPECT_TRUE(same(rank, got[rank], want[rank]));
    }
}

/// A test that runs at several world sizes.
class WorldTest : public ::testing::TestWithParam<int> {
protected:
    WorldTest() : ranks_(fresh_ranks(GetParam())) {}

    std::size_t world() const noexcept { return ranks_.size(); }

    /// Calls `body(std::type_identity<T>, count)` with the counts around which algorithms change.
    template <class Body>
    void for_every_size(Body body) {
        for (const std::size_t count :
             std::vector<std::size_t>{0, 1, world() - 1, world() + 1, 1000, 40'000}) {
            SCOPED_TRACE("count " + std::to_string(count));
            body(std::type_identity<float>{}, count);
            body(std::type_identity<std::int64_t>{}, count);
            if (HasFailure()) return;
        }
    }

    /// Calls `body(root)` with every rank for small counts, otherwise with the last rank only.
    template <class Body>
    void for_every_root(std::size_t count, Body body) {
        for (std::size_t root = count < 100 ? 0 : world() - 1; root < world(); ++root) {
            SCOPED_TRACE("root " + std::to_string(root));
            body(static_cast<int>(root));
            if (HasFailure()) return;
        }
    }

    std::vector<Communicator> ranks_;
};

std::string world_name(const ::testing::TestParamInfo<int>& world);

inline auto every_world() {
    return ::testing::Values(1, 2, 3, 4, 5, 7, 8);
}

}  // namespace nexar::testing
