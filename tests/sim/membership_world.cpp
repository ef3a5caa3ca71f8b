#include "sim/membership_world.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/mix.hpp"
#include "sim/membership_text.hpp"

namespace nexar::testing {
namespace {

NodeId random_node(Random& random) {
    std::array<std::byte, 16> bytes{};
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(bytes.data() + i, &word, sizeof word);
    }
    return NodeId(bytes);
}

}  // namespace

MembershipWorld::MembershipWorld(std::uint64_t seed, const Settings& settings)
    : settings_(settings), random_(seed), now_(TimePoint{} + 1s), paths_(kMost * kMost) {
    machines_.reserve(kMost);
    if (settings.tunnels.neighbours)
        tunnels_ = std::make_unique<MembershipTunnels>(settings.tunnels);
    const char* const level = std::getenv("NEXAR_SIM_TRACE");
    if (level != nullptr) verbose_ = std::atoi(level);
}

void MembershipWorld::say(std::size_t index, const std::string& text) const {
    std::printf(
        "%10.3f ms  %zu:%s.%llu  %s\n", static_cast<double>(now_.time_since_epoch().count()) / 1e6,
        index, machines_[index].self.node.to_hex().substr(0, 4).c_str(),
        static_cast<unsigned long long>(machines_[index].self.incarnation.value()), text.c_str());
}

std::size_t MembershipWorld::add_machine(bool seed) {
    NEXAR_ASSERT(machines_.size() < kMost);
    Machine machine;
    machine.self.node = random_node(random_);
    machine.self.incarnation = Incarnation(1);
    machine.seed = seed;
    machines_.push_back(std::move(machine));
    return machines_.size() - 1;
}

void MembershipWorld::form(std::size_t members, std::size_t seeds) {
    View view{.epoch = Epoch(1)};
    for (std::size_t i = 0; i < members + seeds; ++i) add_machine(i >= members);
    view.members.reserve(members);
    for (std::size_t i = 0; i < members; ++i) {
        view.members.push_back({.node = machines_[i].self.node,
                                .incarnation = machines_[i].self.incarnation,
                                .rank = Rank(static_cast<std::uint32_t>(i))});
    }
    view.next_rank = Rank(static_cast<std::uint32_t>(members));
    if (seeds > 0) {
        const Identity& witness = machines_[members].self;
        view.witness = Witness{.seed = witness.node, .incarnation = witness.incarnation};
    }
    for (std::size_t i = 0; i < members + seeds; ++i) start(i, {.view = view});
}

void MembershipWorld::start(std::size_t index, const membership::Vote& known) {
    Machine& machine = machines_[index];
    if (verbose_ > 0) say(index, "starts with " + text_of(known.view));
    machine.running = true;
    machine.waiting = false;
    machine.paused = false;
    machine.evicted = false;
    machine.minority = false;
    machine.slow = Duration::zero();
    machine.disk = known;
    machine.view = known.view;
    machine.unreachable.clear();
    machine.busy_until = now_;
    place_links(index);
    machine.membership = std::make_unique<membership::Membership>(
        now_, machine.self, known,
        membership::Options{.budget = settings_.budget,
                            .seed = machine.seed,
                            .random_seed = random_.next(),
                            .neighbours = settings_.tunnels.neighbours});
    drain(index);
}

void MembershipWorld::kill(std::size_t index) {
    Machine& machine = machines_[index];
    if (verbose_ > 0) say(index, "is killed");
    machine.running = false;
    machine.membership.reset();
    machine.wakeup.reset();
    for (const std::size_t parcel : machine.inbox) free_parcels_.push_back(parcel);
    machine.inbox.clear();
    if (tunnels_) {
        tunnels_->set_relaying(now_, index, false);
        tunnels_->close(index);
    }
    const bool flush = random_.chance(0.5);  // what it has sent still arrives
    for (std::size_t other = 0; other < machines_.size(); ++other) {
        if (!flush) ++path(index, other).link;
        ++path(other, index).link;
    }
}

void MembershipWorld::new_incarnation(std::size_t index) {
    Identity& self = machines_[index].self;
    self.incarnation = Incarnation(self.incarnation.value() + 1);
}

void MembershipWorld::pause(std::size_t index) {
    if (verbose_ > 0) say(index, "is stopped");
    machines_[index].paused = true;
    if (tunnels_) tunnels_->set_relaying(now_, index, false);
}

void MembershipWorld::resume(std::size_t index) {
    Machine& machine = machines_[index];
    if (!machine.running || !machine.paused) return;
    if (verbose_ > 0) say(index, "continues");
    machine.paused = false;
    if (tunnels_) tunnels_->set_relaying(now_, index, !machine.seed && !machine.evicted);
    if (random_.chance(0.5)) wake(index);
    while (machine.running && !machine.paused && !machine.inbox.empty()) {
        const std::size_t parcel = machine.inbox.front();
        machine.inbox.pop_front();
        handle(parcel);
    }
    if (machine.running) wake(index);
}

void MembershipWorld::cut(std::size_t from, std::size_t to, bool cut) {
    Path& one = path(from, to);
    if (verbose_ > 0 && one.cut != cut)
        say(from, (cut ? "is cut from " : "reaches ") + std::to_string(to));
    if (cut && !one.cut) {
        ++one.link;
        ++path(to, from).link;  // a link needs both directions
    }
    one.cut = cut;
    if (tunnels_) tunnels_->set_cut(now_, from, to, cut);
}

void MembershipWorld::cut_both(std::size_t a, std::size_t b, bool value) {
    cut(a, b, value);
    cut(b, a, value);
}

void MembershipWorld::heal() {
    if (verbose_ > 0) say(0, "all paths work");
    for (std::size_t a = 0; a < machines_.size(); ++a) {
        for (std::size_t b = 0; b < machines_.size(); ++b) {
            path(a, b).cut = false;
            if (tunnels_) tunnels_->set_cut(now_, a, b, false);
        }
    }
}

void MembershipWorld::call_at(TimePoint when, std::function<void()> call) {
    calls_.push_back(std::move(call));
    push({.at = when, .index = calls_.size() - 1, .what = What::call});
}

void MembershipWorld::replay(std::size_t index, Duration every, Duration until) {
    if (until <= Duration::zero()) return;
    for (std::size_t to = 0; to < machines_.size(); ++to) {
        const Path& one = path(index, to);
        if (!one.beat || one.cut) continue;
        const std::size_t parcel = new_parcel();
        parcels_[parcel] = {.from = index,
                            .to = to,
                            .sender = one.beat_from,
                            .from_seed = machines_[index].seed,
                            .link = ~std::uint64_t{0},
                            .message = *one.beat};
        push({.at = now_ + settings_.delay, .index = parcel, .what = What::parcel});
    }
    call_at(now_ + every, [this, index, every, until] { replay(index, every, until - every); });
}

void MembershipWorld::hint(std::size_t index, std::size_t about, membership::Hint hint) {
    Machine& machine = machines_[index];
    if (!machine.running || machine.paused) return;
    machine.membership->hint(now_, machines_[about].self.node, hint);
    drain(index);
}

std::size_t MembershipWorld::index_of(const NodeId& node) const {
    const auto at =
        std::ranges::find(machines_, node, [](const Machine& one) { return one.self.node; });
    NEXAR_ASSERT(at != machines_.end());
    return static_cast<std::size_t>(at - machines_.begin());
}

void MembershipWorld::note(std::uint64_t value) {
    trace_ = mixed(trace_ ^ value);
}

void MembershipWorld::push(Entry entry) {
    entry.number = ++number_;
    queue_.push_back(entry);
    std::ranges::push_heap(queue_, [](const Entry& a, const Entry& b) {
        return a.at != b.at ? a.at > b.at : a.number > b.number;
    });
}

void MembershipWorld::run_until(TimePoint when) {
    run_until_done(when - now_, [] { return false; });
}

bool MembershipWorld::run_until_done(Duration time, const std::function<bool()>& done) {
    const TimePoint end = now_ + time;
    if (done()) return true;
    while (!queue_.empty() && queue_.front().at <= end) {
        std::ranges::pop_heap(queue_, [](const Entry& a, const Entry& b) {
            return a.at != b.at ? a.at > b.at : a.number > b.number;
        });
        const Entry entry = queue_.back();
        queue_.pop_back();
        idle_ = entry.at > now_ ? 0 : idle_ + 1;
        NEXAR_ASSERT(idle_ < 100'000, "virtual time stands still");
        now_ = std::max(now_, entry.at);
        step(entry);
        if (done()) return true;
    }
    now_ = end;
    return done();
}

void MembershipWorld::step(const Entry& entry) {
    ++steps_;
    switch (entry.what) {
        case What::parcel:
            deliver(entry.index);
            break;
        case What::wakeup: {
            Machine& machine = machines_[entry.index];
            if (machine.wakeup_number != entry.wakeup || !machine.running) break;
            machine.wakeup.reset();
            if (!machine.paused) wake(entry.index);
            break;
        }
        case What::call:
            std::exchange(calls_[entry.index], nullptr)();
            break;
    }
}

void MembershipWorld::wake(std::size_t index) {
    Machine& machine = machines_[index];
    if (machine.busy_until > now_) {
        machine.wakeup = machine.busy_until;
        push({.at = machine.busy_until,
              .index = index,
              .wakeup = ++machine.wakeup_number,
              .what = What::wakeup});
        return;
    }
    machine.membership->turn(now_);
    drain(index);
}

void MembershipWorld::drain(std::size_t index) {
    Machine& machine = machines_[index];
    membership::Membership& one = *machine.membership;
    for (bool again = true; again;) {
        while (auto event = one.poll_event()) {
            if (verbose_ > 0) say(index, text_of(*event));
            if (const auto* const decided = std::get_if<membership::Decided>(&*event)) {
                std::erase_if(machine.unreachable, [&](const NodeId& node) {
                    const Member* const old = machine.view.find(node);
                    const Member* const now = decided->view.find(node);
                    return old == nullptr || now == nullptr || old->incarnation != now->incarnation;
                });
                machine.view = decided->view;
            }
            if (std::holds_alternative<membership::Evicted>(*event)) {
                machine.evicted = true;
                if (tunnels_) tunnels_->set_relaying(now_, index, false);
            }
            if (const auto* const side = std::get_if<membership::Minority>(&*event))
                machine.minority = side->minority;
            if (const auto* const pair = std::get_if<membership::Unreachable>(&*event)) {
                std::erase(machine.unreachable, pair->node);
                if (pair->unreachable) machine.unreachable.push_back(pair->node);
            }
            if (watcher_) watcher_(index, *event);
            if (std::holds_alternative<membership::Decided>(*event)) place_links(index);
        }
        while (auto outgoing = one.poll_outgoing()) post(index, std::move(*outgoing));
        again = false;
        if (machine.seed) {
            if (const auto vote = one.unkept()) {
                if (settings_.crash_before_keeping > 0 &&
                    random_.chance(settings_.crash_before_keeping)) {
                    kill(index);
                    return;
                }
                machine.disk = *vote;
                again = true;
            }
        } else {
            again = one.unkept().has_value();
        }
        one.kept();
    }
    schedule(index);
}

void MembershipWorld::schedule(std::size_t index) {
    Machine& machine = machines_[index];
    const std::optional<TimePoint> next = machine.membership->next_deadline();
    if (!next) return;
    const TimePoint at = std::max(*next, now_);
    if (machine.wakeup && *machine.wakeup <= at) return;
    machine.wakeup = at;
    push({.at = at, .index = index, .wakeup = ++machine.wakeup_number, .what = What::wakeup});
}

}  // namespace nexar::testing
