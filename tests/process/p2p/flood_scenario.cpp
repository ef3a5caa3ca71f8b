#include "process/p2p/flood_scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kMostGrowth = 64 * kMiB;

constexpr std::uint64_t kFlood = 1;
constexpr std::uint64_t kWanted = 2;  // a single message within the flood
constexpr std::uint64_t kSide = 3;    // messages on another communicator
constexpr std::uint64_t kWantedAt = 1000;

// Sends that the sender has in flight: twice as many as a receiver keeps headers for.
constexpr std::size_t kMostSends = 32768;
constexpr int kRoundTrips = 50;

// Limits on what a receiver keeps per peer: the peer's pool plus the reserve of a communicator.
constexpr std::uint64_t kMostHeaders = 16384 + 64;
constexpr std::uint64_t kMostPayload = kMiB + 64 * std::uint64_t{1024};

/// The content of all messages: windows at different offsets of one buffer.
class Content {
public:
    explicit Content(std::size_t message_bytes)
        : message_bytes_(message_bytes), bytes_(message_bytes + kPlaces * kStep) {
        fill_pattern(17, 0, std::as_writable_bytes(std::span(bytes_)));
    }

    std::span<const std::uint8_t> operator[](std::uint64_t message) const {
        return std::span(bytes_).subspan(message % kPlaces * kStep, message_bytes_);
    }

private:
    static constexpr std::size_t kPlaces = 4093;  // a prime, so that no window size divides it
    static constexpr std::size_t kStep = 8;

    std::size_t message_bytes_;
    std::vector<std::uint8_t> bytes_;
};

std::uint64_t wanted_at(const FloodPlan& plan) {
    return std::min(kWantedAt, plan.messages / 2);
}

void check(std::span<const std::uint8_t> got, std::span<const std::uint8_t> expected,
           std::uint64_t message) {
    if (std::ranges::equal(got, expected)) return;
    throw Error(Errc::malformed, "message " + std::to_string(message) + " has the wrong content");
}

/// Sends a small and a large message there and back while the flood is pending.
void exchange(Communicator& side, int other, Clock::time_point deadline) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{200'000}}) {
        std::vector<std::uint8_t> message(bytes);
        if (other == 0) {
            fill_pattern(bytes, 0, std::as_writable_bytes(std::span(message)));
            auto send = side.send(std::span(message), other, kSide);
            finish(send, deadline);
            std::vector<std::uint8_t> back(bytes);
            auto receive = side.recv(std::span(back), other, kSide);
            finish(receive, deadline);
            check(back, message, bytes);
        } else {
            auto receive = side.recv(std::span(message), other, kSide);
            finish(receive, deadline);
            auto send = side.send(std::span(message), other, kSide);
            finish(send, deadline);
        }
    }
}

/// The process that posts no receives at first.
class Receiver {
public:
    Receiver(const FloodPlan& plan, const TestCluster& cluster, const Channel& sender)
        : plan_(plan),
          sender_(&sender),
          deadline_(Clock::now() + plan.within),
          content_(plan.message_bytes),
          slots_(std::clamp<std::size_t>(64 * kMiB / plan.message_bytes, 4, 256)),
          memory_(slots_ * plan.message_bytes, 1),
          member_(join_as_child(cluster, sender, {.link = plan.link})),
          side_(member_->world().duplicate()) {}

    void run() {
        Growth growth;
        sender_->say("ready");
        await(*sender_, "flooded", plan_.within);
        for (int i = 0; i < kRoundTrips; ++i) {
            exchange(side_, 1, deadline_);
            growth.look();
        }
        Communicator world = member_->world();
        auto wanted = world.recv(slot(0), 1, kWanted);
        finish(wanted, deadline_);
        check(slot(0), content_[wanted_at(plan_)], wanted_at(plan_));
        growth.look();
        sender_->say("received the wanted message");
        const std::size_t while_flooded = growth.most();
        receive_all(world, growth);
        await(*sender_, "done", plan_.within);
        sender_->say(std::to_string(while_flooded));
        sender_->say(std::to_string(growth.most()));
        member_->node().close();
    }

private:
    std::span<std::uint8_t> slot(std::uint64_t index) {
        return std::span(memory_).subspan(index % slots_ * plan_.message_bytes,
                                          plan_.message_bytes);
    }

    void receive_all(Communicator& world, Growth& growth) {
        struct Pending {
            std::uint64_t message = 0;
            Work<Status> work{};
        };
        std::vector<Pending> pending(slots_);
        std::uint64_t posted = 0;
        const auto take = [&](std::uint64_t index) {
            Pending& oldest = pending[index % slots_];
            finish(oldest.work, deadline_);
            check(slot(index), content_[oldest.message], oldest.message);
            if (index % 4096 == 0 || plan_.message_bytes > 4096) growth.look();
        };
        for (std::uint64_t message = 0; message < plan_.messages; ++message) {
            if (message == wanted_at(plan_)) continue;
            if (posted >= slots_) take(posted - slots_);
            pending[posted % slots_] = {.message = message,
                                        .work = world.recv(slot(posted), 1, kFlood)};
            ++posted;
        }
        for (std::uint64_t i = posted - std::min<std::uint64_t>(posted, slots_); i < posted; ++i) {
            take(i);
        }
    }

    FloodPlan plan_;
    const Channel* sender_;
    Clock::time_point deadline_;
    Content content_;
    std::size_t slots_;
    std::vector<std::uint8_t> memory_;
    std::unique_ptr<Member> member_;
    Communicator side_;
};

class Sender {
public:
    Sender(const FloodPlan& plan, const TestCluster& cluster, const Channel& receiver)
        : plan_(plan),
          receiver_(&receiver),
          deadline_(Clock::now() + plan.within),
          content_(plan.message_bytes),
          member_(join_as_parent(cluster, receiver, {.link = plan.link})),
          world_(member_->world()),
          side_(world_.duplicate()) {}

    void run() {
        await(*receiver_, "ready", plan_.within);
        Growth growth;
        std::vector<Work<>> works(kMostSends);
        offer(works);
        for (int i = 0; i < kRoundTrips; ++i) {
            if (i == 0) receiver_->say("flooded");
            if (i + 1 == kRoundTrips) expect_held_back(works);
            exchange(side_, 0, deadline_);
            growth.look();
        }
        await(*receiver_, "received the wanted message", plan_.within);
        const std::size_t while_flooded = growth.most();
        for (; next_ < plan_.messages; send_next(works)) {
            Work<>& oldest = works[next_ % works.size()];
            if (oldest.valid()) finish(oldest, deadline_);
            if (next_ % 4096 == 0) growth.look();
        }
        for (Work<>& work : works) {
            if (work.valid()) finish(work, deadline_);
            if (plan_.message_bytes > 4096) growth.look();
        }
        receiver_->say("done");
        const std::size_t theirs_while_flooded = std::stoull(hear(*receiver_, plan_.within));
        const std::size_t theirs = std::stoull(hear(*receiver_, plan_.within));
        judge("receiver", theirs_while_flooded, theirs);
        judge("sender", while_flooded, growth.most());
    }

private:
    void send_next(std::vector<Work<>>& works) {
        works[next_ % works.size()] =
            world_.send(content_[next_], 0, next_ == wanted_at(plan_) ? kWanted : kFlood);
        ++next_;
    }

    /// Starts as many sends as may be in flight.
    void offer(std::vector<Work<>>& works) {
        while (next_ < plan_.messages) {
            Work<>& oldest = works[next_ % works.size()];
            if (oldest.valid() && !oldest.done()) return;
            if (oldest.valid()) oldest.wait();
            send_next(works);
        }
    }

    /// The receiver has accepted no more than its limits allow.
    void expect_held_back(const std::vector<Work<>>& works) const {
        const auto waiting = static_cast<std::uint64_t>(std::ranges::count_if(
            works, [](const Work<>& work) { return work.valid() && !work.done(); }));
        const std::uint64_t completed = next_ - waiting;
        std::printf("%zu bytes each: %llu sends completed, %llu are pending\n", plan_.message_bytes,
                    static_cast<unsigned long long>(completed),
                    static_cast<unsigned long long>(waiting));
        EXPECT_GT(waiting, 0U) << "the receiver was not flooded";
        EXPECT_LE(completed, kMostHeaders);
        EXPECT_LE(completed * plan_.message_bytes, kMostPayload);
    }

    void judge(const char* who, std::size_t while_flooded, std::size_t all) const {
        std::printf(
            "%zu bytes each: the %s grew by %.1f MiB while nothing was received, %.1f MiB in "
            "total\n",
            plan_.message_bytes, who,
            static_cast<double>(while_flooded) / static_cast<double>(kMiB),
            static_cast<double>(all) / static_cast<double>(kMiB));
        if (kSanitized) return;  // sanitizers keep freed memory
        EXPECT_LE(all, kMostGrowth) << who;
    }

    FloodPlan plan_;
    const Channel* receiver_;
    Clock::time_point deadline_;
    Content content_;
    std::unique_ptr<Member> member_;
    Communicator world_;
    Communicator side_;
    std::uint64_t next_ = 0;
};

}  // namespace

void withstands_unwanted_messages(const FloodPlan& plan) {
    const TestCluster cluster;
    ChildProcess receiver([&](const Channel& sender) { Receiver(plan, cluster, sender).run(); });
    Sender(plan, cluster, receiver.channel()).run();
    EXPECT_EQ(receiver.wait(), 0);
}

}  // namespace nexar::testing
