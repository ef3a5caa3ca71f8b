#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "chaos/calls.hpp"
#include "collective_call.hpp"
#include "sparse_cluster.hpp"

namespace nexar::testing {

/// Collectives and messages between all ranks of a SparseCluster. Results are checked when an
/// operation ends.
class SparseTraffic {
public:
    explicit SparseTraffic(SparseCluster& cluster) : cluster_(&cluster) {
        cluster.on_done = [this](engine::Operation& done) { on_done(done); };
    }
    ~SparseTraffic() {
        cluster_->on_done = {};
        // Their memory goes with this object.
        for (std::size_t rank = 0; pending_ > 0 && rank < cluster_->size(); ++rank) {
            cluster_->kill(rank);
        }
    }
    SparseTraffic(const SparseTraffic&) = delete;
    SparseTraffic& operator=(const SparseTraffic&) = delete;

    /// Starts a collective on all ranks of a communicator; element i is the context of its rank i,
    /// which is the node ranks[i].
    void start(const std::vector<std::size_t>& ranks, const std::vector<engine::Context*>& contexts,
               const CallTerms& terms) {
        calls_.push_back(make_call(terms, ranks.size()));
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            Started& one = add(text_of(terms, ranks[i]));
            one.rank = static_cast<std::uint32_t>(i);
            one.collective = calls_.back().get();
            one.operation = std::make_unique<engine::CollectiveOperation>();
            one.collective->fill(one.rank, *one.operation);
            one.operation->owner = &one;
            cluster_->post(ranks[i], [&one, context = contexts[i]](engine::Engine& engine) {
                engine.start(*context, *one.operation);
            });
        }
    }

    /// Sends words with a tag from one rank to another, which receives them.
    void pass(std::size_t from, std::size_t to, std::uint64_t tag, std::size_t words) {
        const std::string name = "message " + std::to_string(tag) + " of " + std::to_string(words) +
                                 " words from " + std::to_string(from) + " to " +
                                 std::to_string(to);
        const chaos::Words content =
            chaos::letter(cluster_->node(from).self().node, cluster_->context(from).id, tag, words);
        Started& receive = add(name + " arrives");
        receive.wanted = content;
        receive.message = chaos::receive_call(Rank(static_cast<std::uint32_t>(from)),
                                              cluster_->node(from).self().node, words);
        receive.message->receive->pattern.tag = Tag(tag);
        post(to, receive);
        Started& send = add(name + " leaves");
        send.message = chaos::send_call(Rank(static_cast<std::uint32_t>(to)), content);
        send.message->send->tag = Tag(tag);
        post(from, send);
    }

    /// Runs until everything has ended.
    void finish(Duration at_most = std::chrono::minutes(2)) {
        const bool ended = cluster_->world().run_until([this] { return pending_ == 0; }, at_most);
        for (const Started& one : started_) EXPECT_TRUE(one.ended) << one.text << " did not end";
        ASSERT_TRUE(ended);
        started_.clear();
        calls_.clear();
    }

private:
    struct Started {
        std::string text{};
        bool ended = false;
        std::uint32_t rank = 0;
        CollectiveCall* collective = nullptr;
        std::unique_ptr<engine::CollectiveOperation> operation{};
        std::unique_ptr<chaos::Call> message{};
        chaos::Words wanted{};  // by a receive
    };

    static std::string text_of(const CallTerms& terms, std::size_t rank) {
        return std::string(schedule::name(terms.what)) + " of " + std::to_string(terms.count) +
               (terms.uneven ? " uneven" : " even") + (terms.in_place ? ", in place" : "") +
               " at rank " + std::to_string(rank);
    }

    Started& add(std::string text) {
        ++pending_;
        Started& one = started_.emplace_back();
        one.text = std::move(text);
        return one;
    }

    void post(std::size_t rank, Started& one) {
        one.message->operation().owner = &one;
        cluster_->post(rank, [&one, context = &cluster_->context(rank)](engine::Engine& engine) {
            if (one.message->what == chaos::Call::What::send) {
                engine.start(*context, *one.message->send);
            } else {
                engine.start(*context, *one.message->receive);
            }
        });
    }

    void on_done(engine::Operation& done) {
        Started& one = *static_cast<Started*>(done.owner);
        ASSERT_FALSE(one.ended) << one.text << " ended twice";
        one.ended = true;
        --pending_;
        if (done.error) {
            ADD_FAILURE() << one.text << ": " << done.error->what();
        } else if (one.collective != nullptr) {
            SCOPED_TRACE(one.text);
            one.collective->expect_result(one.rank);
        } else if (one.message->what == chaos::Call::What::receive) {
            EXPECT_EQ(done.envelope.bytes, one.wanted.size() * sizeof one.wanted[0]) << one.text;
            EXPECT_EQ(one.message->out, one.wanted) << one.text;
        }
    }

    SparseCluster* cluster_;
    std::deque<std::unique_ptr<CollectiveCall>> calls_;
    std::deque<Started> started_;
    std::size_t pending_ = 0;
};

/// Runs every operation between all ranks of a cluster, and expects that the results are right and
/// that datagrams have travelled between neighbours only.
void expect_every_operation_works(const SparseShape& shape);

inline std::string shape_name(const ::testing::TestParamInfo<SparseShape>& shape) {
    std::string text = shape.param.topology + "_of_" + std::to_string(shape.param.nodes);
    std::ranges::replace(text, ':', '_');
    return text;
}

}  // namespace nexar::testing
