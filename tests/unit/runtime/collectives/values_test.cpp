// Collectives over single values: the Work returns the result.

#include <array>
#include <cstddef>
#include <functional>
#include <future>
#include <limits>
#include <optional>

#include "unit/runtime/collectives/values.hpp"

namespace nexar::testing {
namespace {

class Values : public WorldTest {};

INSTANTIATE_TEST_SUITE_P(Worlds, Values, ::testing::Values(1, 2, 3, 5), world_name);

double value_of(std::size_t rank) {
    return 1.5 + 3.0 * static_cast<double>(rank);
}

TEST_P(Values, all_reduce_gives_every_rank_the_fold) {
    double sum = 0;
    for (std::size_t rank = 0; rank < world(); ++rank) sum += value_of(rank);
    expect_all(ranks_, sum, [](const Communicator& c, std::size_t rank) {
        return c.all_reduce(value_of(rank), nexar::sum);
    });
    expect_all(ranks_, value_of(world() - 1), [](const Communicator& c, std::size_t rank) {
        return c.all_reduce(value_of(rank), nexar::max);
    });
    expect_all(ranks_, true, [](const Communicator& c, std::size_t rank) {
        return c.all_reduce(rank == 0, std::logical_or<>{});
    });
    expect_all(ranks_, Located<float>{-2.0F, 0}, [](const Communicator& c, std::size_t rank) {
        return c.all_reduce(Located<float>{-2.0F, static_cast<std::int64_t>(rank)}, min_location);
    });
}

TEST_P(Values, structs_are_folded_by_user_operators) {
    const auto wider = [](Extent a, Extent b) {
        return Extent{std::min(a.low, b.low), std::max(a.high, b.high), 'w'};
    };
    const Extent want{0, static_cast<std::int64_t>(10 * (world() - 1) + 1), 'w'};
    const auto results = on_all(ranks_, [&](const Communicator& c, std::size_t rank) {
        const auto low = static_cast<std::int64_t>(10 * rank);
        return c.all_reduce(Extent{low, low + 1, 'w'}, custom(wider, Commutes::yes));
    });
    for (const Extent& got : results) EXPECT_EQ(got, want);
}

TEST_P(Values, broadcast_gives_every_rank_the_value_of_the_root) {
    for (int root = 0; root < static_cast<int>(world()); ++root) {
        expect_all(ranks_, Light::green, [&](const Communicator& c, std::size_t rank) {
            return c.broadcast(static_cast<int>(rank) == root ? Light::green : Light::red, root);
        });
        const NoDefault want(100 + root);
        expect_all(ranks_, want, [&](const Communicator& c, std::size_t rank) {
            return c.broadcast(NoDefault(100 + static_cast<int>(rank)), root);
        });
        expect_all(ranks_, std::byte{7}, [&](const Communicator& c, std::size_t rank) {
            return c.broadcast(static_cast<int>(rank) == root ? std::byte{7} : std::byte{0}, root);
        });
    }
}

TEST_P(Values, reduce_gives_the_fold_to_the_root_and_nothing_to_others) {
    const auto all = static_cast<int>(world() * (world() + 1) / 2);
    for (int root = 0; root < static_cast<int>(world()); ++root) {
        const auto results = on_all(ranks_, [&](const Communicator& c, std::size_t rank) {
            return c.reduce(static_cast<int>(rank) + 1, sum, root);
        });
        for (int rank = 0; rank < static_cast<int>(world()); ++rank) {
            EXPECT_EQ(results[static_cast<std::size_t>(rank)],
                      rank == root ? std::optional(all) : std::nullopt);
        }
    }
}

TEST_P(Values, scan_folds_the_ranks_up_to_and_including_this_one) {
    const auto results = on_all(ranks_, [](const Communicator& c, std::size_t rank) {
        return c.scan(static_cast<std::uint64_t>(rank + 2), product);
    });
    std::uint64_t want = 1;
    for (std::size_t rank = 0; rank < world(); ++rank) {
        want *= rank + 2;
        EXPECT_EQ(results[rank], want);
    }
}

TEST_P(Values, exclusive_scan_folds_the_ranks_before_this_one) {
    const auto results = on_all(ranks_, [](const Communicator& c, std::size_t rank) {
        return c.exclusive_scan(static_cast<int>(rank) + 1, sum);
    });
    const auto from_100 = on_all(ranks_, [](const Communicator& c, std::size_t rank) {
        return c.exclusive_scan(static_cast<int>(rank) + 1, sum, rank == 0 ? 100 : -5);
    });
    const auto least = on_all(ranks_, [](const Communicator& c, std::size_t rank) {
        return c.exclusive_scan(5.0F - static_cast<float>(rank), nexar::min);
    });
    for (std::size_t rank = 0; rank < world(); ++rank) {
        const auto before = static_cast<int>(rank * (rank + 1) / 2);
        EXPECT_EQ(results[rank], before);
        EXPECT_EQ(from_100[rank], 100 + before);
        EXPECT_EQ(least[rank], rank == 0 ? std::numeric_limits<float>::infinity()
                                         : 6.0F - static_cast<float>(rank));
    }
}

TEST_P(Values, exclusive_scan_with_a_user_operator_starts_with_the_initial_value) {
    // Joins two intervals; not commutative.
    const auto joined = [](Extent a, Extent b) { return Extent{a.low, b.high, 'j'}; };
    const auto results = on_all(ranks_, [&](const Communicator& c, std::size_t rank) {
        const auto own = static_cast<std::int64_t>(rank);
        return c.exclusive_scan(Extent{own, own, 'j'}, joined, Extent{-7, -6, 'j'});
    });
    for (std::size_t rank = 0; rank < world(); ++rank) {
        const std::int64_t high = rank == 0 ? -6 : static_cast<std::int64_t>(rank) - 1;
        EXPECT_EQ(results[rank], (Extent{-7, high, 'j'}));
    }
}

TEST_P(Values, gather_gives_the_root_the_values_of_all_ranks) {
    std::vector<NoDefault> want;
    std::vector<bool> flags;
    for (std::size_t rank = 0; rank < world(); ++rank) {
        want.emplace_back(static_cast<int>(rank) * 3);
        flags.push_back(rank % 2 == 0);
    }
    for (int root = 0; root < static_cast<int>(world()); ++root) {
        const auto results = on_all(ranks_, [&](const Communicator& c, std::size_t rank) {
            return c.gather(NoDefault(static_cast<int>(rank) * 3), root);
        });
        for (int rank = 0; rank < static_cast<int>(world()); ++rank) {
            EXPECT_EQ(results[static_cast<std::size_t>(rank)],
                      rank == root ? want : std::vector<NoDefault>{});
        }
    }
    expect_all(ranks_, flags,
               [](const Communicator& c, std::size_t rank) { return c.all_gather(rank % 2 == 0); });
    expect_all(ranks_, want, [](const Communicator& c, std::size_t rank) {
        return c.all_gather(NoDefault(static_cast<int>(rank) * 3));
    });
}

TEST_P(Values, survive_moving_and_dropping_their_work) {
    std::vector<Work<int>> works;
    for (const Communicator& c : ranks_) {
        auto work = c.all_reduce(c.rank() + 1, sum);
        Work<int> moved = std::move(work);
        works.push_back(std::move(moved));
        works.back() = std::move(works.back());
    }
    for (Work<int>& work : works) {
        EXPECT_EQ(outcome(work).value(), static_cast<int>(world() * (world() + 1) / 2));
    }
    // Destroyed while in flight: each destructor waits for completion in its own thread.
    on_every_rank(ranks_, [](Communicator& c, std::size_t) {
        {
            const auto dropped = c.all_reduce(std::array<double, 1>{1.0}[0], sum);
        }
        {
            const auto dropped = c.all_gather(c.rank());
        }
    });
    expect_usable(ranks_);
}

TEST_P(Values, can_be_waited_for_together) {
    on_every_rank(ranks_, [](Communicator& c, std::size_t) {
        auto total = c.all_reduce(c.rank(), sum);
        auto all = c.all_gather(c.rank());
        auto barrier = c.barrier();
        wait_all(total, all, barrier);
        EXPECT_EQ(total.wait(), c.size() * (c.size() - 1) / 2);
        EXPECT_EQ(all.wait().back(), c.size() - 1);
    });
}

TEST_P(Values, arrive_through_futures_and_callbacks) {
    on_every_rank(ranks_, [](Communicator& c, std::size_t) {
        auto future = c.broadcast(c.rank() + 40, 0).future();
        EXPECT_EQ(future.get(), 40);
        std::promise<std::optional<int>> told;
        c.reduce(1, sum, 0).then(
            [&told](Result<std::optional<int>> result) { told.set_value(result.value()); });
        EXPECT_EQ(told.get_future().get(), c.rank() == 0 ? std::optional(c.size()) : std::nullopt);
    });
}

TEST_P(Values, values_of_different_sizes_are_a_mismatch) {
    if (world() == 1) return;
    const std::array<Extent, 1> big{};
    const std::array<std::array<int, 3>, 1> small{};
    std::vector<std::vector<Extent>> bigger(world(), std::vector<Extent>(world()));
    std::vector<std::vector<std::array<int, 3>>> smaller(world(),
                                                         std::vector<std::array<int, 3>>(world()));
    std::vector<Work<>> works;
    for (std::size_t rank = 0; rank < world(); ++rank) {
        const Communicator& c = ranks_[rank];
        works.push_back(rank == 0 ? c.all_gather(big, bigger[rank])
                                  : c.all_gather(small, smaller[rank]));
    }
    for (auto& work : works) {
        const auto result = outcome(work);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code(), Errc::invalid_argument);
        EXPECT_NE(result.error().cause().find("opaque[24 B] x 1"), std::string::npos)
            << result.error().what();
    }
    expect_usable(ranks_);
}

}  // namespace
}  // namespace nexar::testing
