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

/// What takes longer is a hang.
inline constexpr std::chrono::seconds kHang{kSanitized ? 240 : 60};

/// The ranks of a communicator that is used by nobody else, element i being rank i; all on nodes of
/// this process that tests of this world share, connected over QUIC.
std::vector<Communicator> fresh_ranks(int world);
/// The same on nodes that the test may close.
std::vector<Communicator> worlds_of(const std::vector<Node>& nodes);

/// Fails the test when the Work does not end; ends the process when it does not even end after it
/// was cancelled, because its memory is in use and it cannot be dropped.
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

/// Waits for all: element i is of rank i.
void expect_success(std::vector<Work<>>& works);
std::vector<Result<void>> outcomes(std::vector<Work<>>& works);

/// "success" or the name of the code.
std::string code_name(const Result<void>& result);

/// Starts `start(communicator, rank)` on every rank, in another order each time, before it waits
/// for any.
using Start = std::function<Work<>(Communicator&, std::size_t)>;
std::vector<Work<>> start_all(std::vector<Communicator>& ranks, const Start& start);
void run(std::vector<Communicator>& ranks, const Start& start);

/// The sum of small vectors is right: the communicator is as good as new.
void expect_usable(std::vector<Communicator>& ranks);

/// Calls `body(communicator, rank)` in one thread for each rank and waits for all; for calls that
/// wait themselves. What they throw fails the test.
void on_every_rank(std::vector<Communicator>& ranks,
                   const std::function<void(Communicator&, std::size_t)>& body);

/// Every rank has this.
template <Element T>
void expect_everywhere(const PerRank<T>& got, const std::vector<T>& want) {
    for (std::size_t rank = 0; rank < got.size(); ++rank) EXPECT_TRUE(same(rank, got[rank], want));
}
/// Every rank has what `want` has for it.
template <Element T>
void expect_each(const PerRank<T>& got, const PerRank<T>& want) {
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
        EXPECT_TRUE(same(rank, got[rank], want[rank]));
    }
}

/// A test that is run in every world that matters.
class WorldTest : public ::testing::TestWithParam<int> {
protected:
    WorldTest() : ranks_(fresh_ranks(GetParam())) {}

    std::size_t world() const noexcept { return ranks_.size(); }

    /// Calls `body(std::type_identity<T>, count)` for the sizes at which algorithms change.
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

    /// Every rank for small counts, else one.
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
