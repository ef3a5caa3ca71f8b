#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "link/timer_heap.hpp"

/// The simulator: whole clusters in one thread on virtual time, without sockets and without sleep.
/// What is random comes from one seed, so that a run is replayed by it. On two levels: links that
/// are made up (fabric.hpp), and the real QUIC connections over datagrams that are made up
/// (datagram_net.hpp). Both give carriers, so that what stands on links runs unchanged on either.
namespace nexar::sim {

class World;

/// Something that acts in a World: a node of a cluster, most often. It gets a turn when its
/// deadline is due. What others do to it (something arrives) must change what next_deadline()
/// says, and must be told to the World with touch(); carriers do so for whoever drives them.
class Actor {
public:
    Actor() = default;
    virtual ~Actor();
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    virtual void turn(TimePoint now) = 0;
    /// When the next turn is wanted; not later than `now`: at once. None: not until something
    /// comes.
    virtual std::optional<TimePoint> next_deadline() const = 0;

private:
    friend class World;
    friend class link::TimerHeap<Actor>;

    World* world_ = nullptr;
    // NOLINTNEXTLINE(readability-identifier-naming): the name that TimerHeap asks for
    std::size_t heap_place = std::numeric_limits<std::size_t>::max();
    TimePoint not_before_ = TimePoint::min();  // paused or busy until then
    Duration turn_cost_{};
    std::uint64_t number_ = 0;
    bool touched_ = false;
    bool asked_always_ = false;
};

/// Virtual time, who acts in it, and the seed of everything random. One thread.
///
/// At one instant calls of at() come first, in the order in which they were made, then actors. Time
/// stands still while anything is due, and jumps to what is next.
class World final : public Clock {
public:
    explicit World(std::uint64_t seed);
    /// Actors must have been removed, or be gone.
    ~World() override;
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    TimePoint now() const noexcept override { return now_; }
    Random& random() noexcept { return random_; }
    std::uint64_t seed() const noexcept { return seed_; }

    /// Calls `what` at that time; at once, but not from within this call, when it has passed.
    void at(TimePoint when, std::function<void()> what);
    void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

    /// The actor must outlive the world, or be removed; its destructor does that.
    void add(Actor& actor);
    void remove(Actor& actor);

    /// Ask the actor for its deadline again before time moves on. Does nothing for an actor that
    /// is in no world.
    void touch(Actor& actor);

    /// Ask it before every step, from now on: what it drives changes without a word. May be said
    /// before the actor is added.
    void always_ask(Actor& actor);

    /// No turns before `until`, as if the process were stopped: what arrives waits. Again, with an
    /// earlier time: it goes on then.
    void pause(Actor& actor, TimePoint until);

    /// Each turn takes so long: the next one comes that much later at the earliest.
    void set_turn_cost(Actor& actor, Duration cost);

    /// Goes on until `done()`, which is asked after every step, at most for `at_most` of virtual
    /// time; whether it was done.
    bool run_until(const std::function<bool()>& done, Duration at_most);
    void run_for(Duration duration);

    /// Turns and calls so far.
    std::uint64_t steps() const noexcept { return steps_; }

    /// Notes that something happened: mixed, with the time, into a hash that two runs of one seed
    /// have in common exactly if the same things happened in the same order.
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
