// A rank of recovery_bench: exchanges checked traffic every 2 ms, calls elastic_checkpoint() every
// 10 ms, and goes on with the survivors when a member fails.

#include <unistd.h>
#include <ctime>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <nexar/nexar.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "recovery_notice.hpp"

namespace nexar::bench {

std::int64_t monotonic_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

namespace {

constexpr std::chrono::milliseconds kTick{2};
constexpr int kTicksPerCheckpoint = 5;
constexpr std::size_t kElements = 256;
constexpr std::size_t kRingBytes = 4096;
constexpr std::chrono::seconds kPatience{20};

void say(Notice notice, std::string_view text = {}) {
    notice.process = ::getpid();
    text.copy(notice.text.data(), notice.text.size() - 1);
    if (::write(kNoticeDescriptor, &notice, sizeof notice) != sizeof notice) std::_Exit(2);
}

[[noreturn]] void give_up(std::string_view why) {
    say({.kind = Notice::Kind::trouble}, why);
    std::_Exit(1);
}

class RecoveringRank {
public:
    explicit RecoveringRank(std::int64_t began)
        : began_(began),
          node_(join()),
          joined_(monotonic_ns()),
          known_failures_(node_.failures().list()),
          world_(node_.world()) {
        node_.failures().on_change([this](const std::vector<int>& failed) { tell(failed); });
        tell(node_.failures().list());
    }

    [[noreturn]] void run() {
        const std::int64_t taken_in = monotonic_ns();
        all_reduce();
        const std::int64_t reduced = monotonic_ns();
        say({.kind = Notice::Kind::joined,
             .rank = node_.rank(),
             .world = world_.size(),
             .at = reduced,
             .value = began_},
            "join() " + std::to_string((joined_ - began_) / 1000) + " us, world() " +
                std::to_string((taken_in - joined_) / 1000) + " us, all-reduce " +
                std::to_string((reduced - taken_in) / 1000) + " us");
        for (;;) {
            try {
                step();
            } catch (const Error& error) {
                recover(error);
            }
        }
    }

private:
    /// Also runs on the thread that makes progress.
    void tell(const std::vector<int>& failed) {
        const std::int64_t now = monotonic_ns();
        const std::scoped_lock lock(telling_);
        for (const int rank : failed) {
            if (std::ranges::count(known_failures_, rank) != 0) continue;
            known_failures_.push_back(rank);
            say({.kind = Notice::Kind::failed, .rank = rank, .at = now});
        }
    }

    void step() {
        next_ = std::max(next_ + kTick, std::chrono::steady_clock::now());
        std::this_thread::sleep_until(next_);
        exchange();
        all_reduce();
        note_progress();
        if (++ticks_ % kTicksPerCheckpoint != 0) return;
        const std::int64_t begun = monotonic_ns();
        const auto change = node_.elastic_checkpoint();
        if (!change) return;
        const std::int64_t changed = monotonic_ns();
        adopt(change->new_world);
        all_reduce();
        note_progress();
        const std::int64_t reduced = monotonic_ns();
        say({.kind = Notice::Kind::grown,
             .world = world_.size(),
             .at = reduced,
             .value = longest_pause_},
            "checkpoint " + std::to_string((changed - begun) / 1000) + " us, all-reduce " +
                std::to_string((reduced - changed) / 1000) + " us");
        longest_pause_ = 0;
    }

    void adopt(Communicator world) {
        world_ = std::move(world);
        ticks_ = 0;
    }

    /// Shrinks the world until the survivors have completed a correct all-reduce.
    void recover(const Error& first) {
        Error error = first;
        for (const auto deadline = std::chrono::steady_clock::now() + kPatience;;) {
            const bool out = error.code() == Errc::evicted;
            if (out || remedy(error.code()) != Remedy::recover) give_up(error.what());
            if (std::chrono::steady_clock::now() > deadline) give_up(error.what());
            try {
                adopt(node_.world().shrink());
                all_reduce();
                break;
            } catch (const Error& another) {
                error = another;
            }
        }
        say({.kind = Notice::Kind::recovered, .world = world_.size(), .at = monotonic_ns()});
        last_progress_ = monotonic_ns();
        longest_pause_ = 0;
    }

    /// Sums one number per rank and element, and checks the sums.
    void all_reduce() {
        const std::vector<int> members = world_.members();
        const std::int64_t ranks = std::reduce(members.begin(), members.end(), std::int64_t{0});
        std::vector<std::int64_t> numbers(kElements);
        for (std::size_t i = 0; i < kElements; ++i) {
            numbers[i] = node_.rank() + static_cast<std::int64_t>(i);
        }
        world_.all_reduce(std::span(numbers), sum).wait();
        for (std::size_t i = 0; i < kElements; ++i) {
            const std::int64_t expected =
                ranks + std::ssize(members) * static_cast<std::int64_t>(i);
            if (numbers[i] != expected) give_up("an all-reduce has a wrong result");
        }
    }

    /// Passes some bytes around the ring.
    void exchange() {
        const int size = world_.size();
        const int me = world_.rank();
        const int before = (me + size - 1) % size;
        const std::vector<std::int32_t> out(kRingBytes / sizeof(std::int32_t), me);
        std::vector<std::int32_t> in(out.size());
        world_.send_recv(std::span(out), (me + 1) % size, std::span(in), before).wait();
        if (!std::ranges::all_of(in, [&](std::int32_t one) { return one == before; })) {
            give_up("a message has wrong bytes");
        }
    }

    void note_progress() {
        const std::int64_t now = monotonic_ns();
        if (last_progress_ != 0) longest_pause_ = std::max(longest_pause_, now - last_progress_);
        last_progress_ = now;
    }

    std::int64_t began_;
    Node node_;
    std::int64_t joined_;
    std::mutex telling_{};
    std::vector<int> known_failures_;
    Communicator world_;
    std::chrono::steady_clock::time_point next_{};
    int ticks_ = 0;
    std::int64_t last_progress_ = 0;
    std::int64_t longest_pause_ = 0;
};

}  // namespace

int be_a_rank() {
    try {
        RecoveringRank(monotonic_ns()).run();
    } catch (const std::exception& error) {
        give_up(error.what());
    }
}

}  // namespace nexar::bench
