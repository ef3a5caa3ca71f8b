// Exercises that send messages between ranks 0 and 1; other ranks stay idle.

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "bench/exercise.hpp"
#include "bench/memory.hpp"
#include "bench/reference.hpp"

namespace nexar::bench {

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The base of all: memory to send from and to receive into.
class MessageExercise : public Exercise {
public:
    MessageExercise(const Plan& plan, const Communicator& world, const Extent& extent)
        : world_(world),
          outgoing_(extent.count, plan.dtype, plan.allocator),
          incoming_(extent.count, plan.dtype, plan.allocator) {
        own_.dtype = plan.dtype;
        own_.rank = static_cast<std::uint32_t>(world.rank());
        // The received data equals the other rank's data, as after a broadcast.
        other_.dtype = plan.dtype;
        other_.operation = schedule::Collective::broadcast;
        other_.root = own_.rank == 0 ? 1 : 0;
    }

    void fill() override {
        own_.fill(outgoing_.buffer());
        spoil(incoming_.buffer());
    }

protected:
    bool takes_part() const noexcept { return world_.rank() < 2; }
    bool is_first() const noexcept { return world_.rank() == 0; }
    int other() const noexcept { return is_first() ? 1 : 0; }
    Communicator& world() noexcept { return world_; }
    Buffer outgoing() const noexcept { return outgoing_.buffer(); }
    Buffer incoming() const noexcept { return incoming_.buffer(); }
    std::uint64_t wrong_received() const { return other_.wrong(incoming_.buffer()); }

private:
    Communicator world_;
    Memory outgoing_;
    Memory incoming_;
    Reference own_{};
    Reference other_{};
};

/// A round trip; reports half of its time.
class PingPong final : public MessageExercise {
public:
    using MessageExercise::MessageExercise;

    double run() override {
        if (!takes_part()) return 0;
        if (!is_first()) {
            (void)world().recv(incoming(), other()).wait();
            world().send(outgoing(), other()).wait();
            return 0;
        }
        const auto begin = std::chrono::steady_clock::now();
        world().send(outgoing(), other()).wait();
        (void)world().recv(incoming(), other()).wait();
        return seconds_since(begin) / 2;
    }

    std::uint64_t wrong() const override { return takes_part() ? wrong_received() : 0; }
};

/// Many concurrent messages in one direction, and a reply after all have arrived; reports the time
/// per message. All have the same content and arrive in the same memory.
class Stream final : public MessageExercise {
public:
    using MessageExercise::MessageExercise;

    double run() override {
        if (!takes_part()) return 0;
        const auto begin = std::chrono::steady_clock::now();
        std::array<std::byte, 4> answer{};
        const Buffer small{.data = answer.data(), .count = answer.size(), .dtype = DType::u8};
        if (is_first()) {
            std::vector<Work<>> works(kWindow);
            for (Work<>& work : works) work = world().send(outgoing(), other());
            wait_all(std::span<Work<>>(works));
            (void)world().recv(small, other()).wait();
            return seconds_since(begin) / kWindow;
        }
        std::vector<Work<Status>> works(kWindow);
        for (Work<Status>& work : works) work = world().recv(incoming(), other());
        (void)wait_all(std::span<Work<Status>>(works));
        world().send(small, other()).wait();
        return 0;
    }

    std::uint64_t wrong() const override {
        return takes_part() && !is_first() ? wrong_received() : 0;
    }
};

/// One message in each direction at the same time; reports the slower of the two.
class Exchange final : public MessageExercise {
public:
    using MessageExercise::MessageExercise;

    double run() override {
        if (!takes_part()) return 0;
        const auto begin = std::chrono::steady_clock::now();
        auto arrival = world().recv(incoming(), other());
        world().send(outgoing(), other()).wait();
        (void)arrival.wait();
        return seconds_since(begin);
    }

    std::uint64_t wrong() const override { return takes_part() ? wrong_received() : 0; }
};

}  // namespace

std::unique_ptr<Exercise> make_message_exercise(const Plan& plan, const Communicator& world,
                                                const Extent& extent) {
    switch (plan.subject.kind) {
        case Subject::Kind::latency:
            return std::make_unique<PingPong>(plan, world, extent);
        case Subject::Kind::bandwidth:
            return std::make_unique<Stream>(plan, world, extent);
        default:
            return std::make_unique<Exchange>(plan, world, extent);
    }
}

}  // namespace nexar::bench
