// Ranks that give up operations in which others read their shared buffers in place, and ranks that
// show nonsense. A reader fails or gets the right data; it never takes anything else for data.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "memory_ranks.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using engine::MemoryExecutor;
using schedule::Collective;
using schedule::testing::Case;
using State = MemoryExecutor::State;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NEXAR_THREAD_SANITIZER
#endif
#endif
#if defined(NEXAR_THREAD_SANITIZER) || defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

struct SharingPair {
    SharingPair()
        : segments(heap_segments(2, kBytes)),
          first(executor_of(segments, 0, &buffers)),
          second(executor_of(segments, 1, &buffers)) {}

    Case all_reduce(std::uint64_t count = 6000) const {
        const Case c{.algorithm = schedule::find_algorithm(Collective::all_reduce, "slices"),
                     .world = 2,
                     .count = count};
        return fitted(c, first->layout());
    }
    Sharing both() { return {.buffers = &buffers, .input = true, .output = true}; }

    TestBuffers buffers;
    std::vector<std::shared_ptr<HeapSegment>> segments;
    std::unique_ptr<MemoryExecutor> first;
    std::unique_ptr<MemoryExecutor> second;
};

TEST(SharedBuffers, of_a_rank_that_gave_up_are_not_read) {
    SharingPair pair;
    const Case c = pair.all_reduce();
    const MemoryPart one(c, 0, 1, pair.both());
    {
        const MemoryPart two(c, 1, 1, pair.both());
        pair.second->begin(two.call(7));
        EXPECT_EQ(settle(*pair.second), State::waiting);
        pair.second->give_up();
    }
    pair.first->begin(one.call(7));
    EXPECT_EQ(settle(*pair.first), State::passed);
    EXPECT_EQ(pair.first->culprit(), 1U);
    pair.first->give_up();
    // Later operations are not affected.
    const MemoryPart a(c, 0, 1, pair.both());
    const MemoryPart b(c, 1, 1, pair.both());
    pair.first->begin(a.call(8));
    pair.second->begin(b.call(8));
    State left = State::waiting;
    State right = State::waiting;
    for (int i = 0; i < 1000 && (left == State::waiting || right == State::waiting); ++i) {
        left = pair.first->advance();
        right = pair.second->advance();
    }
    EXPECT_EQ(left, State::done);
    EXPECT_EQ(right, State::done);
    EXPECT_EQ(a.wrong(), "");
    EXPECT_EQ(b.wrong(), "");
}

// The owner gives up and overwrites its memory while the reader is in the middle of a fold.
TEST(SharedBuffers, released_during_a_fold_fail_the_reader) {
    for (int at = 0; at < 6; ++at) {
        SharingPair pair;
        const Case c = pair.all_reduce(40'000);
        const MemoryPart one(c, 0, 1, pair.both());
        const auto two = std::make_unique<MemoryPart>(c, 1, 1, pair.both());
        pair.second->begin(two->call(0));
        EXPECT_EQ(settle(*pair.second), State::waiting);

        int folds = 0;
        class Interrupted final : public compute::UserFold {
        public:
            explicit Interrupted(std::function<void()> hook) : hook_(std::move(hook)) {}
            void fold(std::byte* out, const std::byte* a, const std::byte* b,
                      std::size_t count) const override {
                hook_();
                plain_.fold(out, a, b, count);
            }

        private:
            NumberFold plain_{[](std::uint64_t x, std::uint64_t y) { return x + y; }};
            std::function<void()> hook_;
        };
        const compute::Reducer reducer(DType::u64, MemoryPart::kElement,
                                       std::make_shared<Interrupted>([&] {
                                           if (folds++ != at) return;
                                           pair.second->give_up();
                                           two->spoil();
                                       }),
                                       false);
        engine::MemoryCall call = one.call(0);
        call.reducer = &reducer;
        pair.first->begin(call);
        EXPECT_EQ(settle(*pair.first), State::passed) << at;
        EXPECT_GT(folds, at);
        pair.first->give_up();
    }
}

// Under ThreadSanitizer nothing overwrites the memory: reading what another thread writes at the
// same time, and dropping it, is what a reader does on purpose.
TEST(SharedBuffers, never_give_wrong_data_while_their_owner_gives_up_at_any_time) {
    SharingPair pair;
    const Case c = pair.all_reduce(20'000);
    const int calls = schedule::testing::kSanitized ? 200 : 3000;
    std::atomic<std::uint64_t> done = 0;
    std::atomic<int> wrong = 0;
    std::atomic<int> completed = 0;
    std::thread owner([&] {
        Random random(test_seed(41));
        for (std::uint64_t number = 0; number < static_cast<std::uint64_t>(calls); ++number) {
            const MemoryPart part(c, 1, 1, pair.both());
            pair.second->begin(part.call(number));
            const std::uint64_t patience = random.below(60);
            State state = State::waiting;
            for (std::uint64_t i = 0; i < patience && state == State::waiting; ++i) {
                state = pair.second->advance();
                std::this_thread::yield();
            }
            if (state == State::done && !part.wrong().empty()) ++wrong;
            pair.second->give_up();
            if (!kThreadSanitizer) part.spoil();
            while (done <= number) std::this_thread::yield();
        }
    });
    for (std::uint64_t number = 0; number < static_cast<std::uint64_t>(calls); ++number) {
        const MemoryPart part(c, 0, 1, pair.both());
        pair.first->begin(part.call(number));
        State state = State::waiting;
        while (state == State::waiting) {
            state = pair.first->advance();
            std::this_thread::yield();
        }
        if (state == State::done) ++completed;
        if (state == State::done && !part.wrong().empty()) ++wrong;
        pair.first->give_up();
        ++done;
    }
    owner.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(completed, 0);
    EXPECT_LT(completed, calls);
}

// A sanitizer reports accesses outside of the buffers.
TEST(SharedBuffers, survive_nonsense_about_where_a_vector_is) {
    Random random(test_seed(42));
    const auto all = algorithms_in_memory();
    for (int i = 0; i < 3000; ++i) {
        SharingPair pair;
        Case c{.algorithm = all[random.below(all.size())],
               .world = 2,
               .root = static_cast<std::uint32_t>(random.below(2)),
               .count = 1000 + random.below(4000)};
        if (c.algorithm->operation == Collective::barrier) c.count = 0;
        c = fitted(c, pair.first->layout());
        const MemoryPart part(c, 0, 1, pair.both());
        const auto real = pair.buffers.make(1, random.below(60'000));
        pair.first->begin(part.call(0));
        for (int round = 0; round < 20; ++round) {
            const auto words = std::span(
                reinterpret_cast<std::uint64_t*>(pair.segments[1]->bytes().data()), kBytes / 8);
            const std::size_t slot = pair.first->layout().slot(0) / 8;
            const auto any = [&] { return random.next() >> random.below(64); };
            words[slot] = 1;
            words[slot + 1] = 1;
            words[slot + 2] = part.plan().extent_bytes();
            for (std::size_t word = slot + 4; word < slot + 8; word += 2) {
                words[word] = random.chance(0.8) ? real.name : any();
                words[word + 1] = random.chance(0.5) ? any() : random.below(8000) * 8;
            }
            words[0] = random.chance(0.5) ? any() : engine::progress_key(0, any() % 500);
            if (pair.first->advance() != State::waiting) break;
        }
        pair.first->give_up();
    }
}

TEST(PeerBuffers, are_dropped_when_their_owner_has_released_them) {
    engine::OwnBuffers own;
    engine::PeerBuffers seen;
    for (int i = 0; i < 1000; ++i) {
        const auto memory = std::make_shared<HeapSegment>(engine::whole_buffer(100));
        const std::uint64_t name = own.add(memory);
        EXPECT_TRUE(engine::names_buffer(name));
        seen.add(name, memory);
        EXPECT_EQ(seen.find(name), memory);
        EXPECT_EQ(seen.size(), 1U);
        own.remove(name);
    }
    seen.drop_released();
    EXPECT_EQ(seen.size(), 0U);
    EXPECT_TRUE(own.empty());
}

TEST(PeerBuffers, without_room_for_their_tail_are_ignored) {
    engine::PeerBuffers seen;
    seen.add(engine::kBufferNames << 32U | 1, std::make_shared<HeapSegment>(64));
    seen.add(engine::kBufferNames << 32U | 2, std::make_shared<HeapSegment>(0));
    EXPECT_EQ(seen.size(), 0U);
}

TEST(PeerBuffers, limit_what_a_peer_may_not_have_seen_yet) {
    engine::PeerBuffers peer;
    for (std::uint64_t name = 0; name < engine::PeerBuffers::kMostUnproven; ++name) {
        EXPECT_TRUE(peer.may_share());
        peer.shared(name);
    }
    EXPECT_FALSE(peer.may_share());
    peer.prove();
    EXPECT_TRUE(peer.may_share());
    for (std::uint64_t name = 100; peer.may_share(); ++name) {
        peer.shared(name);
        peer.prove();
        ASSERT_LE(name, 100 + engine::PeerBuffers::kMostKnown);
    }
    EXPECT_TRUE(peer.knows(3));
    peer.forget(3);
    EXPECT_FALSE(peer.knows(3));
    EXPECT_TRUE(peer.may_share());
}

TEST(OwnBuffers, are_found_by_memory_that_lies_in_them_entirely) {
    engine::OwnBuffers own;
    const auto memory = std::make_shared<HeapSegment>(engine::whole_buffer(1000));
    const std::uint64_t name = own.add(memory);
    const port::ConstBytes all = std::as_const(*memory).bytes();
    EXPECT_EQ(own.find(all.first(1024))->name, name);
    EXPECT_EQ(own.find(all.subspan(1000, 24))->name, name);
    EXPECT_EQ(own.find(all.subspan(1000, 25)), nullptr);
    EXPECT_EQ(own.find(all.subspan(1030, 0)), nullptr);
    std::array<std::byte, 8> other{};
    EXPECT_EQ(own.find(other), nullptr);
}

}  // namespace
}  // namespace nexar::testing
