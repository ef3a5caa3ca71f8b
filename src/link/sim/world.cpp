#include "link/sim/world.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::sim {

namespace {
// Virtual time must advance: an actor that keeps asking for a turn at the same instant would keep a
// real loop from sleeping.
constexpr std::uint64_t kMostStepsAtOneInstant = 100'000;
}  // namespace

Actor::~Actor() {
    if (world_ != nullptr) world_->remove(*this);
}

World::World(std::uint64_t seed) : seed_(seed), random_(seed) {
    trace(seed);
}

World::~World() {
    for (Actor* actor : actors_) actor->world_ = nullptr;
}

void World::at(TimePoint when, std::function<void()> what) {
    calls_.push_back({.due = when, .number = numbers_++, .what = std::move(what)});
    std::ranges::push_heap(calls_, later);
}

void World::add(Actor& actor) {
    NEXAR_ASSERT(actor.world_ == nullptr, "an actor can be in only one world, once");
    actor.world_ = this;
    actor.number_ = numbers_++;
    actors_.push_back(&actor);
    if (actor.asked_always_) asked_always_.push_back(&actor);
    touch(actor);
}

void World::remove(Actor& actor) {
    if (actor.world_ != this) return;
    due_.remove(actor);
    std::erase(actors_, &actor);
    std::erase(asked_always_, &actor);
    if (std::exchange(actor.touched_, false)) std::erase(touched_, &actor);
    actor.world_ = nullptr;
}

void World::touch(Actor& actor) {
    if (actor.world_ != this || std::exchange(actor.touched_, true)) return;
    touched_.push_back(&actor);
}

void World::always_ask(Actor& actor) {
    if (std::exchange(actor.asked_always_, true)) return;
    if (actor.world_ == this) asked_always_.push_back(&actor);
}

void World::pause(Actor& actor, TimePoint until) {
    trace(actor.number_, until.time_since_epoch().count());
    actor.not_before_ = until;
    touch(actor);
}

void World::set_turn_cost(Actor& actor, Duration cost) {
    actor.turn_cost_ = cost;
}

void World::ask(Actor& actor) {
    const auto wanted = actor.next_deadline();
    if (wanted) {
        due_.set(actor, std::max({*wanted, actor.not_before_, now_}));
    } else {
        due_.remove(actor);
    }
}

void World::settle_touched() {
    for (Actor* actor : touched_) {
        actor->touched_ = false;
        ask(*actor);
    }
    touched_.clear();
}

void World::ask_everybody() {
    for (Actor* actor : actors_) touch(*actor);
}

void World::advance_to(TimePoint time) {
    ++steps_;
    steps_at_now_ = time > now_ ? 0 : steps_at_now_ + 1;
    NEXAR_ASSERT(steps_at_now_ < kMostStepsAtOneInstant,
                 "an actor spins: virtual time does not advance");
    now_ = std::max(now_, time);
}

void World::run_call() {
    std::ranges::pop_heap(calls_, later);
    const std::function<void()> what = std::move(calls_.back().what);
    calls_.pop_back();
    what();
    // The call may have changed any actor.
    ask_everybody();
}

void World::run_turn() {
    Actor& actor = due_.first();
    trace(actor.number_);
    if (actor.turn_cost_ > Duration::zero()) actor.not_before_ = now_ + actor.turn_cost_;
    // Before the turn, because the actor may be destroyed in it.
    touch(actor);
    actor.turn(now_);
}

bool World::step(TimePoint limit) {
    for (Actor* actor : asked_always_) touch(*actor);
    settle_touched();
    const TimePoint call = calls_.empty() ? TimePoint::max() : calls_.front().due;
    const TimePoint turn = due_.empty() ? TimePoint::max() : due_.due();
    const TimePoint next = std::min(call, turn);
    if (next == TimePoint::max() || next > limit) return false;
    advance_to(next);
    if (call <= turn) {
        run_call();
    } else {
        run_turn();
    }
    return true;
}

bool World::run_until(const std::function<bool()>& done, Duration at_most) {
    const TimePoint limit = now_ + at_most;
    ask_everybody();
    while (!done()) {
        if (step(limit)) continue;
        if (limit > now_) advance_to(limit);
        return done();
    }
    return true;
}

void World::run_for(Duration duration) {
    run_until([] { return false; }, duration);
}

}  // namespace nexar::sim
