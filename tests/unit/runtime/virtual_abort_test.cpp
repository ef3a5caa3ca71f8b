// Which reports of an abort a seed believes after its members have changed, on virtual time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/runtime/virtual_join_fixture.hpp"

namespace nexar::runtime {
namespace {

using ::testing::HasSubstr;

class VirtualAbort : public VirtualGrow {
protected:
    static Rank rank_of(const VirtualJoiner& node) {
        return node.view()->find(node.identity().node)->rank;
    }
    /// Lets a node tell the seed that this rank has aborted.
    void abort(VirtualJoiner& node, Rank rank) {
        node.line().abort({.code = 9, .rank = rank, .text = "the input has ended"});
        world_.touch(node);
    }
    /// Cuts the last of three members off from the seed, and with `evict` also from the others. It
    /// aborts at the end of the cut.
    void abort_after_cut(bool evict) {
        form(3);
        VirtualJoiner& last = *nodes_.back();
        net_.partition(last.host(), seed_->host());
        if (evict) mesh_.cut(last.identity().node);
        world_.run_for(2s);
        ASSERT_EQ(nodes_.front()->is_member(2), evict);
        ASSERT_EQ(seed_->server().view(), nodes_.front()->view());
        abort(last, rank_of(last));
        net_.heal_all();
    }
    const std::optional<Error>& reported() { return seed_->server().aborted(); }
    bool is_reported() {
        return world_.run_until([&] { return reported().has_value(); }, 10s);
    }
};

TEST_F(VirtualAbort, of_a_rank_that_joined_later_names_that_rank) {
    form(3);
    nodes_.erase(nodes_.begin());
    ASSERT_TRUE(all_have(2));
    VirtualJoiner& late = join(token(1));
    ASSERT_TRUE(all_have(3));
    ASSERT_TRUE(seed_has(3)) << seed_->server().status();
    ASSERT_EQ(rank_of(late), Rank(3));
    abort(late, Rank(3));
    ASSERT_TRUE(is_reported());
    EXPECT_EQ(reported()->rank(), 3);
    EXPECT_EQ(reported()->abort_code(), 9);
    EXPECT_THAT(reported()->cause(), HasSubstr("rank 3 aborted the program with code 9"));
}

TEST_F(VirtualAbort, of_another_rank_is_not_believed) {
    form(3);
    nodes_.erase(nodes_.begin());
    ASSERT_TRUE(all_have(2));
    VirtualJoiner& late = join(token(1));
    ASSERT_TRUE(all_have(3));
    ASSERT_TRUE(seed_has(3)) << seed_->server().status();
    abort(late, Rank(2));  // its place among the three members, and the rank of another one
    world_.run_for(5s);
    EXPECT_FALSE(reported());
    VirtualJoiner& other = *nodes_.front();
    abort(other, rank_of(other));
    ASSERT_TRUE(is_reported());
    EXPECT_EQ(reported()->rank(), public_rank(rank_of(other)));
}

TEST_F(VirtualAbort, that_a_cut_delayed_is_believed) {
    abort_after_cut(false);
    EXPECT_TRUE(is_reported());
}

TEST_F(VirtualAbort, of_a_member_that_was_evicted_during_a_cut_is_not_believed) {
    abort_after_cut(true);
    world_.run_for(10s);
    EXPECT_FALSE(reported());
}

}  // namespace
}  // namespace nexar::runtime
