#include "sparse_transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nexar/log.hpp>
#include <string>
#include <vector>

#include "base/mix.hpp"
#include "base/random.hpp"
#include "sparse_cluster.hpp"

namespace nexar::testing {

namespace {

constexpr Duration kBar = std::chrono::seconds(1);
constexpr std::uint64_t kNumbered = 40;  // small messages that follow each other
constexpr Tag kLarge{1};
constexpr Tag kSmall{2};

/// Never zero, so that a word that has not arrived differs from it.
std::uint64_t word_at(std::uint64_t seed, std::size_t i) {
    return mixed(seed ^ mixed(i)) | 1U;
}

/// One large message from rank 0 of a communicator of two to rank 1, and small numbered ones in the
/// other direction, each of which is sent when the one before has arrived.
class RelayedTransfer {
public:
    RelayedTransfer(const SparseShape& shape, std::size_t bytes)
        : random_(shape.seed * 31 + 7), cluster_(shape), seed_(shape.seed) {
        out_.resize(bytes / sizeof(std::uint64_t));
        for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = word_at(seed_, i);
        in_.resize(out_.size());
        sent_bytes_ = std::as_bytes(std::span(out_));
        received_bytes_ = std::as_writable_bytes(std::span(in_));
        cluster_.on_done = [this](engine::Operation& done) { on_done(done); };
    }
    ~RelayedTransfer() { end(); }
    RelayedTransfer(const RelayedTransfer&) = delete;
    RelayedTransfer& operator=(const RelayedTransfer&) = delete;

    void run();
    Duration longest_pause() const noexcept { return longest_; }

private:
    struct Numbered {
        engine::SendOperation send{};
        engine::ReceiveOperation receive{};
        std::uint64_t out = 0;
        std::uint64_t in = 0;
        port::ConstBytes sent{};
        port::Bytes received{};
    };

    void choose_ends();
    void start();
    void start_numbered();
    void post_receive(Numbered& one);
    void on_done(engine::Operation& done);
    /// Notes how much of the large message has arrived.
    void observe();
    bool arrives(std::size_t words, Duration at_most);
    std::size_t relay() const;
    void check_end();
    void end();

    Random random_;
    std::vector<std::uint64_t> out_;
    std::vector<std::uint64_t> in_;
    port::ConstBytes sent_bytes_{};
    port::Bytes received_bytes_{};
    engine::SendOperation send_{};
    engine::ReceiveOperation receive_{};
    std::array<Numbered, kNumbered + 1> numbered_{};
    std::uint64_t numbers_ = 0;  // that have arrived
    bool sent_ = false;
    bool received_ = false;

    SparseCluster cluster_;
    std::uint64_t seed_;
    std::array<std::size_t, 2> ends_{};
    std::vector<engine::Context*> contexts_;
    std::size_t arrived_ = 0;  // words of the large message, from the front
    TimePoint progressed_{};
    Duration longest_{};
};

void RelayedTransfer::end() {
    cluster_.on_done = {};
    for (std::size_t rank = 0; rank < cluster_.size(); ++rank) cluster_.kill(rank);
}

void RelayedTransfer::choose_ends() {
    const routing::Graph& graph = cluster_.graph();
    do {
        ends_ = {random_.below(cluster_.size()), random_.below(cluster_.size())};
    } while (ends_[0] == ends_[1] || graph.adjacent(static_cast<routing::Position>(ends_[0]),
                                                    static_cast<routing::Position>(ends_[1])));
}

void RelayedTransfer::post_receive(Numbered& one) {
    one.received = std::as_writable_bytes(std::span(&one.in, 1));
    one.receive.pattern = {.source = Rank(1), .tag = kSmall};
    one.receive.content = std::span(&one.received, 1);
    cluster_.post(ends_[0], [this, &one](engine::Engine& engine) {
        engine.start(*contexts_[0], one.receive);
    });
}

void RelayedTransfer::start_numbered() {
    Numbered& one = numbered_[numbers_];
    one.out = word_at(seed_ + 1, numbers_);
    one.sent = std::as_bytes(std::span(&one.out, 1));
    one.send.to = Rank(0);
    one.send.tag = kSmall;
    one.send.content = std::span(&one.sent, 1);
    cluster_.post(ends_[1],
                  [this, &one](engine::Engine& engine) { engine.start(*contexts_[1], one.send); });
}

void RelayedTransfer::start() {
    contexts_ = cluster_.make_communicator(71, ends_);
    receive_.pattern = {.source = Rank(0), .tag = kLarge};
    receive_.content = std::span(&received_bytes_, 1);
    send_.to = Rank(1);
    send_.tag = kLarge;
    send_.content = std::span(&sent_bytes_, 1);
    cluster_.post(ends_[1],
                  [this](engine::Engine& engine) { engine.start(*contexts_[1], receive_); });
    cluster_.post(ends_[0], [this](engine::Engine& engine) { engine.start(*contexts_[0], send_); });
    for (Numbered& one : numbered_) post_receive(one);
    start_numbered();
}

void RelayedTransfer::on_done(engine::Operation& done) {
    if (done.error) {
        ADD_FAILURE() << "an operation failed: " << done.error->what();
        return;
    }
    if (&done == &send_) sent_ = true;
    if (&done == &receive_) received_ = true;
    if (numbers_ >= kNumbered || &done != &numbered_[numbers_].receive) return;
    EXPECT_EQ(numbered_[numbers_].in, word_at(seed_ + 1, numbers_));
    if (++numbers_ < kNumbered) start_numbered();
}

void RelayedTransfer::observe() {
    const std::size_t before = arrived_;
    while (arrived_ < in_.size() && in_[arrived_] != 0) ++arrived_;
    const TimePoint now = cluster_.world().now();
    // The first bytes wait for the handshake of the two.
    if (before != 0 && before < in_.size()) longest_ = std::max(longest_, now - progressed_);
    if (arrived_ != before) progressed_ = now;
}

bool RelayedTransfer::arrives(std::size_t words, Duration at_most) {
    return cluster_.world().run_until(
        [&] {
            observe();
            return arrived_ >= words;
        },
        at_most);
}

/// The neighbour to which the sender has sent most: the transfer goes through it.
std::size_t RelayedTransfer::relay() const {
    std::size_t most = 0;
    for (std::size_t rank = 0; rank < cluster_.size(); ++rank) {
        if (cluster_.bytes_between(ends_[0], rank) > cluster_.bytes_between(ends_[0], most)) {
            most = rank;
        }
    }
    return most;
}

void RelayedTransfer::check_end() {
    EXPECT_TRUE(sent_);
    EXPECT_EQ(receive_.envelope.bytes, received_bytes_.size());
    EXPECT_TRUE(in_ == out_) << "the message arrived with other bytes";
    EXPECT_EQ(numbers_, kNumbered);
    // A message that arrived twice would end the receive that is left over.
    cluster_.world().run_for(std::chrono::milliseconds(300));
    EXPECT_TRUE(numbered_.back().receive.active) << "a message arrived twice";
}

void RelayedTransfer::run() {
    ASSERT_TRUE(cluster_.form(std::chrono::seconds(5)).has_value());
    choose_ends();
    start();
    const std::size_t part = in_.size() / 8;
    ASSERT_TRUE(arrives(part + random_.below(5 * part), std::chrono::minutes(1)));
    const std::size_t victim = relay();
    const std::uint64_t carried = cluster_.bytes_between(ends_[0], victim);
    ASSERT_GE(carried, received_bytes_.size() / 8) << "rank " << victim << " is not the relay";
    ASSERT_LT(arrived_, in_.size());
    cluster_.kill(victim);
    ASSERT_TRUE(arrives(in_.size(), std::chrono::minutes(1)))
        << "only " << arrived_ << " of " << in_.size() << " words arrived; rank " << victim
        << " between " << ends_[0] << " and " << ends_[1] << " was killed";
    ASSERT_TRUE(cluster_.world().run_until(
        [this] { return sent_ && received_ && numbers_ == kNumbered; }, std::chrono::seconds(10)))
        << numbers_ << " numbered messages arrived";
    check_end();
    EXPECT_LT(longest_, kBar) << "rank " << victim << " between " << ends_[0] << " and " << ends_[1]
                              << " was killed";
}

}  // namespace

void expect_transfers_survive_relays(const TransferRuns& runs) {
    set_log_level(LogLevel::off);
    Duration longest{};
    for (std::uint64_t seed = runs.first_seed; seed < runs.first_seed + runs.runs; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed);
        const SparseShape shape{.nodes = 8 + random.below(runs.most_nodes - 7),
                                .topology = random.chance(0.5) ? "k_regular:4" : "hypercube",
                                .seed = seed};
        RelayedTransfer transfer(shape, runs.bytes);
        ASSERT_NO_FATAL_FAILURE(transfer.run());
        ASSERT_FALSE(::testing::Test::HasFailure());
        longest = std::max(longest, transfer.longest_pause());
    }
    std::printf("%llu transfers of %.0f MiB; the longest pause was %.0f ms\n",
                static_cast<unsigned long long>(runs.runs),
                static_cast<double>(runs.bytes) / (1U << 20U),
                std::chrono::duration<double, std::milli>(longest).count());
}

}  // namespace nexar::testing
