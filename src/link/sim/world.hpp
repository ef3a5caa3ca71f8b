#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "link/common/timer_heap.hpp"

/// The simulator: whole clusters in one thread on virtual time, without sockets and without sleep.
/// All randomness comes from one seed, which replays a run. There are two levels: simulated links
/// (fabric.hpp), and real QUIC connections over simulated datagrams (datagram_net.hpp). Both
/// provide carriers, so code above links runs unchanged on either.
namespace nexar::sim {

class World;

/// Something that acts in a World, usually a node. It gets a turn when its deadline is due. When
/// something happens to it (a packet arrives), next_deadline() must change, and touch() must inform
/// the World; carriers call touch() for the actor that drives them.
class Actor {
public:
    Actor() = default;
    virtual ~Actor();
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    virtual void turn(TimePoint now) = 0;
    /// When the actor wants its next turn; at once if that is not later than `now`. nullopt: not
    /// until something happens.
    virtual std::optional<TimePoint> next_deadline() const = 0;

private:
    friend class World;
    friend class link::TimerHeap<Actor>;

    World* world_ = nullptr;
    // NOLINTNEXTLINE(readability-identifier-naming): the name that TimerHeap requires
    std::size_t heap_place = std::numeric_limits<std::size_t>::max();
    TimePoint not_before_ = TimePoint::min();  // paused or busy until then
    Duration turn_cost_{};
    std::uint64_t number_ = 0;
    bool touched_ = false;
    bool asked_always_ = false;
};

/// Virtual time, its actors, and the seed of all randomness. One thread.
///
/// At one instant the calls of at() run first, in the order in which they were made, then the
/// actors. Time does not advance while anything is due; then it jumps to the next deadline.
class World final : public Clock {
public:
    explicit World(std::uint64_t seed);
    /// All actors must have been removed or destroyed.
    ~World() override;
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    TimePoint now() const noexcept override { return now_; }
    Random& random() noexcept { return random_; }
    std::uint64_t seed() const noexcept { return seed_; }

    /// Calls `what` at that time or, if it has passed, at once, but never from within this call.
    void at(TimePoint when, std::function<void()> what);
    void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

    /// The actor must outlive the world or be removed; its destructor removes it.
    void add(Actor& actor);
    void remove(Actor& actor);

    /// Asks the actor for its deadline again before time advances. Does nothing if the actor is not
    /// in a world.
    void touch(Actor& actor);

    /// From now on asks the actor before every step, because its carrier changes without touch().
    /// May be called before the actor is added.
    void always_ask(Actor& actor);

    /// Gives the actor no turns before `until`, as if its process were stopped. Another call with
    /// an earlier time shortens the pause.
    void pause(Actor& actor, TimePoint until);

    /// Each turn takes `cost`: the next one begins that much later at the earliest.
    void set_turn_cost(Actor& actor, Duration cost);

    /// Runs until `done()`, which it calls after every step, returns true, or until `at_most` of
    /// virtual time has passed. Returns the last result of `done()`.
    bool run_until(const std::function<bool()>& done, Duration at_most);
    void run_for(Duration duration);

    /// The number of turns and calls so far.
    std::uint64_t steps() const noexcept { return steps_; }

    /// Mixes an event, with its time, into a hash. Two runs with one seed have the same hash
    /// exactly if the same events happened in the same order.
    template <class... Words>
    void trace(Words... words) noexcept {
        mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
        (mix(static_cast<std::uint64_t>(words)), ...);
    }
    std::uint64_t trace_hash() const noexcept { return trace_; }

private:
    struct TimedAction {
        TimePoint due{};
        std::uint64_t number = 0;
        std::function<void()> what{};
    };

    // One round of a multiply-rotate mixer; a chain of them is order-sensitive.
    void mix(std::uint64_t word) noexcept {
        trace_ = (trace_ ^ word) * 0x9e3779b97f4a7c15U;
        trace_ ^= trace_ >> 29U;
    }
    static bool later(const TimedAction& a, const TimedAction& b) noexcept {
        return a.due != b.due ? a.due > b.due : a.number > b.number;
    }

    void settle_touched();
    void ask(Actor& actor);
    void ask_everybody();
    bool step(TimePoint limit);
    void advance_to(TimePoint time);
    void run_call();
    void run_turn();

    std::uint64_t seed_;
    Random random_;
    TimePoint now_{std::chrono::seconds(1000)};
    std::vector<TimedAction> calls_;  // a heap
    std::vector<Actor*> actors_;
    link::TimerHeap<Actor> due_;
    std::vector<Actor*> asked_always_;
    std::vector<Actor*> touched_;
    std::uint64_t numbers_ = 0;
    std::uint64_t steps_ = 0;
    std::uint64_t steps_at_now_ = 0;
    std::uint64_t trace_ = 0;
};

}  // namespace nexar::sim
