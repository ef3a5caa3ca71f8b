// The protocol of the ring and the one of the bell, as step machines on a weak memory model: all
// interleavings of a few operations are tried. Each rule of the protocols is also left out once,
// which the exploration must notice.

#include "unit/link/shm/interleaving.hpp"

#include <gtest/gtest.h>

namespace nexar::testing {
namespace {

using Order = WeakMemory::Order;

struct RingRules {
    bool head_is_release = true;
    bool clears_next_head = true;
    bool keeps_room_for_next_head = true;
};

// Records of one slot each: RingWriter::commit() and RingReader.
constexpr std::size_t kSlots = 3;
constexpr std::size_t kRecords = 5;
constexpr std::size_t kHead = 0;     // kSlots words
constexpr std::size_t kContent = 4;  // kSlots words
constexpr std::size_t kTaken = 8;

class RecordWriter {
public:
    explicit RecordWriter(RingRules rules) : rules_(rules) {}

    Step step(WeakMemory& memory) {
        if (written_ == kRecords) return Step::done;
        const std::size_t slot = written_ % kSlots;
        switch (at_) {
            case 0: {
                const std::size_t in_ring = written_ - memory.load(0, kTaken);
                const std::size_t most = rules_.keeps_room_for_next_head ? kSlots - 1 : kSlots;
                if (in_ring >= most) return Step::waits;
                break;
            }
            case 1:
                memory.store(0, kContent + slot, 100 + written_, Order::relaxed);
                break;
            case 2:
                if (rules_.clears_next_head) {
                    memory.store(0, kHead + (written_ + 1) % kSlots, 0, Order::relaxed);
                }
                break;
            default:
                memory.store(0, kHead + slot, 1,
                             rules_.head_is_release ? Order::release : Order::relaxed);
                ++written_;
        }
        at_ = (at_ + 1) % 4;
        return Step::went_on;
    }
    void describe(std::string& out) const {
        out.push_back(static_cast<char>(written_));
        out.push_back(static_cast<char>(at_));
    }

private:
    RingRules rules_;
    std::size_t written_ = 0;
    std::size_t at_ = 0;
};

class RecordReader {
public:
    Step step(WeakMemory& memory) {
        if (read_ == kRecords) return Step::done;
        const std::size_t slot = read_ % kSlots;
        switch (at_) {
            case 0:
                if (memory.load(1, kHead + slot) == 0) return Step::waits;
                break;
            case 1:
                if (memory.load(1, kContent + slot) != 100 + read_) return Step::wrong;
                break;
            default:
                ++read_;
                memory.store(1, kTaken, read_, Order::release);
        }
        at_ = (at_ + 1) % 3;
        return Step::went_on;
    }
    void describe(std::string& out) const {
        out.push_back(static_cast<char>(read_));
        out.push_back(static_cast<char>(at_));
    }

private:
    std::size_t read_ = 0;
    std::size_t at_ = 0;
};

auto explore_ring(RingRules rules) {
    return Explorer<RecordWriter, RecordReader>(RecordWriter(rules), RecordReader()).explore();
}

TEST(interleaving, every_record_is_read_once_and_whole) {
    const auto outcome = explore_ring({});
    EXPECT_GT(outcome.states, 400U);
    EXPECT_EQ(outcome.wrong, 0U);
    EXPECT_EQ(outcome.stuck, 0U);
}

TEST(interleaving, a_head_without_release_shows_content_that_is_not_there) {
    EXPECT_GT(explore_ring({.head_is_release = false}).wrong, 0U);
}

TEST(interleaving, a_next_head_that_is_not_cleared_shows_an_old_record) {
    EXPECT_GT(explore_ring({.clears_next_head = false}).wrong, 0U);
}

TEST(interleaving, a_full_ring_without_room_for_the_next_head_loses_a_record) {
    const auto outcome = explore_ring({.keeps_room_for_next_head = false});
    EXPECT_GT(outcome.wrong + outcome.stuck, 0U);
}

struct BellRules {
    bool writer_fences = true;
    bool sleeper_fences = true;
    bool counts_sleeps = true;
};

constexpr std::size_t kMessages = 3;
constexpr std::size_t kWritten = 0;
constexpr std::size_t kSleep = 1;
constexpr std::size_t kBell = 2;

// RingWriter::commit(), then Link::ring_if_asleep().
class BellWriter {
public:
    explicit BellWriter(BellRules rules) : rules_(rules) {}

    Step step(WeakMemory& memory) {
        switch (at_) {
            case 0:
                if (sent_ == kMessages) return Step::done;
                memory.store(0, kWritten, ++sent_, Order::release);
                break;
            case 1:
                if (rules_.writer_fences && !memory.drained(0)) return Step::waits;
                break;
            case 2: {
                const std::size_t sleep = memory.load(0, kSleep);
                if (sleep == 0 || sleep == rung_) {
                    at_ = 0;
                    return Step::went_on;
                }
                rung_ = sleep;
                break;
            }
            default:
                if (!memory.store_through(0, kBell, 1)) return Step::waits;
        }
        at_ = (at_ + 1) % 4;
        return Step::went_on;
    }
    void describe(std::string& out) const {
        for (const std::size_t value : {sent_, rung_, at_}) {
            out.push_back(static_cast<char>(value));
        }
    }

private:
    BellRules rules_;
    std::size_t sent_ = 0;
    std::size_t rung_ = 0;
    std::size_t at_ = 0;
};

// Carrier::fall_asleep(), the wait for the descriptor, and wake_up().
class Sleeper {
public:
    explicit Sleeper(BellRules rules) : rules_(rules) {}

    Step step(WeakMemory& memory) {
        if (taken_ == kMessages) return Step::done;
        switch (at_) {
            case 0:
                sleeps_ = rules_.counts_sleeps ? sleeps_ + 1 : 1;
                memory.store(1, kSleep, sleeps_, Order::relaxed);
                break;
            case 1:
                if (rules_.sleeper_fences && !memory.drained(1)) return Step::waits;
                break;
            case 2:
                at_ = memory.load(1, kWritten) != taken_ ? 4 : 3;
                return Step::went_on;
            case 3:  // the wait; the kernel completes our stores meanwhile
                if (!memory.drained(1) || memory.load(1, kBell) == 0) return Step::waits;
                break;
            case 4:
                memory.store(1, kSleep, 0, Order::relaxed);
                break;
            case 5:  // drains the socket
                if (!memory.store_through(1, kBell, 0)) return Step::waits;
                break;
            default:
                taken_ = memory.load(1, kWritten);
        }
        at_ = (at_ + 1) % 7;
        return Step::went_on;
    }
    void describe(std::string& out) const {
        for (const std::size_t value : {taken_, sleeps_, at_}) {
            out.push_back(static_cast<char>(value));
        }
    }

private:
    BellRules rules_;
    std::size_t taken_ = 0;
    std::size_t sleeps_ = 0;
    std::size_t at_ = 0;
};

auto explore_bell(BellRules rules) {
    return Explorer<BellWriter, Sleeper>(BellWriter(rules), Sleeper(rules)).explore();
}

TEST(interleaving, a_sleeper_never_misses_a_message) {
    const auto outcome = explore_bell({});
    EXPECT_GT(outcome.states, 300U);
    EXPECT_EQ(outcome.stuck, 0U);
}

TEST(interleaving, without_the_fence_of_the_writer_a_sleeper_misses_a_message) {
    EXPECT_GT(explore_bell({.writer_fences = false}).stuck, 0U);
}

TEST(interleaving, without_the_fence_of_the_sleeper_it_misses_a_message) {
    EXPECT_GT(explore_bell({.sleeper_fences = false}).stuck, 0U);
}

TEST(interleaving, a_bell_that_rings_once_needs_a_count_of_sleeps) {
    EXPECT_GT(explore_bell({.counts_sleeps = false}).stuck, 0U);
}

}  // namespace
}  // namespace nexar::testing
