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
constexpr std::uint64_t kWanted = 2;  // of one message inside the flood
constexpr std::uint64_t kBeside = 3;  // on another communicator
constexpr std::uint64_t kWantedAt = 1000;

// Works that the sender has under way: twice as many as a receiver keeps headers for.
constexpr std::size_t kMostSends = 32768;
constexpr int kRoundTrips = 50;

// What a receiver keeps of a peer: the pool of the peer and the reserve of a communicator.
constexpr std::uint64_t kMostHeaders = 16384 + 64;
constexpr std::uint64_t kMostPayload = kMiB + 64 * std::uint64_t{1024};

/// What the messages are, without memory for each: windows at different places of one content.
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
    static constexpr std::size_t kPlaces = 4093;  // a prime: no window size divides it
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
    throw Error(Errc::malformed, "message " + std::to_string(message) + " has other bytes");
}

/// A small and a large message there and back, while the flood waits.
void exchange(Communicator& beside, int other, Clock::time_point deadline) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{200'000}}) {
        std::vector<std::uint8_t> message(bytes);
        if (other == 0) {
            fill_pattern(bytes, 0, std::as_writable_bytes(std::span(message)));
            auto send = beside.send(std::span(message), other, kBeside);
            finish(send, deadline);
            std::vector<std::uint8_t> back(bytes);
            auto receive = beside.recv(std::span(back), other, kBeside);
            finish(receive, deadline);
            check(back, message, bytes);
        } else {
            auto receive = beside.recv(std::span(message), other, kBeside);
            finish(receive, deadline);
            auto send = beside.send(std::span(message), other, kBeside);
            finish(send, deadline);
        }
    }
}

/// The process that asks for nothing at first.
class Receiver {
public:
    Receiver(const FloodPlan& plan, const TestCluster& cluster, const Channel& sender)
        : plan_(plan),
          sender_(&sender),
          deadline_(Clock::now() + plan.within),
          content_(plan.message_bytes),
          slots_(std::clamp<std::size_t>(64 * kMiB / plan.message_bytes, 4, 256)),
          memory_(slots_ * plan.message_bytes, 1),
          member_(join_as_child(cluster, sender)),
          beside_(member_->world().duplicate()) {}

    void run() {
        Growth growth;
        sender_->say("ready");
        await(*sender_, "standing", plan_.within);
        for (int i = 0; i < kRoundTrips; ++i) {
            exchange(beside_, 1, deadline_);
            growth.look();
        }
        Communicator world = member_->world();
        auto wanted = world.recv(slot(0), 1, kWanted);
        finish(wanted, deadline_);
        check(slot(0), content_[wanted_at(plan_)], wanted_at(plan_));
        growth.look();
        sender_->say("got what it wanted");
        const std::size_t standing = growth.most();
        receive_all(world, growth);
        await(*sender_, "done", plan_.within);
        sender_->say(std::to_string(standing));
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
    Communicator beside_;
};

class Sender {
public:
    Sender(const FloodPlan& plan, const TestCluster& cluster, const Channel& receiver)
        : plan_(plan),
          receiver_(&receiver),
          deadline_(Clock::now() + plan.within),
          content_(plan.message_bytes),
          member_(join_as_parent(cluster, receiver)),
          world_(member_->world()),
          beside_(world_.duplicate()) {}

    void run() {
        await(*receiver_, "ready", plan_.within);
        Growth growth;
        std::vector<Work<>> works(kMostSends);
        offer(works);
        for (int i = 0; i < kRoundTrips; ++i) {
            if (i == 0) receiver_->say("standing");
            if (i + 1 == kRoundTrips) expect_held_back(works);
            exchange(beside_, 0, deadline_);
            growth.look();
        }
        await(*receiver_, "got what it wanted", plan_.within);
        const std::size_t standing = growth.most();
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
        const std::size_t theirs_standing = std::stoull(hear(*receiver_, plan_.within));
        const std::size_t theirs = std::stoull(hear(*receiver_, plan_.within));
        judge("receiver", theirs_standing, theirs);
        judge("sender", standing, growth.most());
    }

private:
    void send_next(std::vector<Work<>>& works) {
        works[next_ % works.size()] =
            world_.send(content_[next_], 0, next_ == wanted_at(plan_) ? kWanted : kFlood);
        ++next_;
    }

    /// As many as may be under way.
    void offer(std::vector<Work<>>& works) {
        while (next_ < plan_.messages) {
            Work<>& oldest = works[next_ % works.size()];
            if (oldest.valid() && !oldest.done()) return;
            if (oldest.valid()) oldest.wait();
            send_next(works);
        }
    }

    /// The receiver has let come what its limits say and no more.
    void expect_held_back(const std::vector<Work<>>& works) const {
        const auto waiting = static_cast<std::uint64_t>(std::ranges::count_if(
            works, [](const Work<>& work) { return work.valid() && !work.done(); }));
        const std::uint64_t ended = next_ - waiting;
        std::printf("%zu bytes each: %llu ended, %llu works wait\n", plan_.message_bytes,
                    static_cast<unsigned long long>(ended),
                    static_cast<unsigned long long>(waiting));
        EXPECT_GT(waiting, 0U) << "this was no flood";
        EXPECT_LE(ended, kMostHeaders);
        EXPECT_LE(ended * plan_.message_bytes, kMostPayload);
    }

    void judge(const char* who, std::size_t standing, std::size_t all) const {
        std::printf("%zu bytes each: the %s grew by %.1f MiB while nobody asked, %.1f in all\n",
                    plan_.message_bytes, who,
                    static_cast<double>(standing) / static_cast<double>(kMiB),
                    static_cast<double>(all) / static_cast<double>(kMiB));
        if (kSanitized) return;  // they keep what was freed
        EXPECT_LE(all, kMostGrowth) << who;
    }

    FloodPlan plan_;
    const Channel* receiver_;
    Clock::time_point deadline_;
    Content content_;
    std::unique_ptr<Member> member_;
    Communicator world_;
    Communicator beside_;
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
