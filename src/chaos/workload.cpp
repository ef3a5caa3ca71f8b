#include "chaos/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/mix.hpp"

namespace nexar::chaos {

namespace {

constexpr Duration kPause = std::chrono::milliseconds(150);
constexpr std::uint64_t kAgreeEvery = 4;
constexpr std::uint64_t kCheckpointEvery = 3;

bool is_expected(Errc code) noexcept {
    switch (code) {
        case Errc::membership_changed:
        case Errc::minority_partition:
        case Errc::peer_unreachable:
        case Errc::revoked:
        case Errc::evicted:
        case Errc::link_closed:  // a member left in good order
        case Errc::closed:       // the same, in a collective
        case Errc::outcome_unknown:
        case Errc::cancelled:  // by a sender that is in a minority
            return true;
        default:
            return false;
    }
}

}  // namespace

Workload::Workload(Rules& rules, std::size_t machine, Random random, Say say)
    : rules_(&rules), machine_(machine), random_(random), say_(std::move(say)) {}

void Workload::say(const std::string& what) const {
    if (say_) say_(fmt::format("machine {}: {}", machine_, what));
}

void Workload::later(Duration delay, Next next) {
    alarm_.emplace(now() + delay, std::move(next));
}

std::string Workload::state() const {
    std::string text = fmt::format("machine {} {}", machine_, step_);
    for (const auto& call : calls_) text += fmt::format(", waits in {}", call->text);
    if (awaited_) text += fmt::format(", waits for epoch {}", awaited_->first.value());
    if (world_ != nullptr) {
        text += fmt::format(", world {:016x} of {}, round {}", world_->id.value(), nodes_.size(),
                            round_);
    }
    if (viewed_) text += ", " + text_of(node_->members().view());
    return text;
}

// Events.

void Workload::viewed(const View& view) {
    rules_->viewed(machine_, node_->self().node, view, !std::exchange(viewed_, true));
    say("adopts " + text_of(view));
    if (!awaited_ || view.epoch < awaited_->first) return;
    const Next next = awaited_->second;
    awaited_.reset();
    later(Duration::zero(), next);
}

void Workload::left_behind() {
    if (quitting_) return;
    say("finds nobody who could take it in");
    rules_->leaves(node_->self().node);
    quit();
}

void Workload::entered(engine::Context& world, const std::vector<NodeId>& nodes) {
    world_ = &world;
    nodes_ = nodes;
    rounds_ = 0;
    attempts_ = 0;
    recovering_ = false;
    rules_->made(world.id, nodes);
    say(fmt::format("enters world {:016x} of {}", world.id.value(), nodes.size()));
    // Operations must not start while the node changes.
    later(Duration::zero(), [this] { sync(); });
}

void Workload::turned(TimePoint now) {
    if (const auto part = node_->spinning(); !part.empty()) {
        rules_->fail("P1", fmt::format("{} of machine {} spins: {}", part, machine_, state()));
    }
    if (over_) return;
    if (const auto& failure = node_->failure()) {
        say(fmt::format("cannot join: {}", failure->what()));
        over_ = true;
        return;
    }
    if (quitting_) {
        if (node_->closed()) over_ = true;
        return;
    }
    if (node_->members().evicted() && calls_.empty()) return stop();
    for (int i = 0; alarm_ && alarm_->first <= now && i < 8; ++i) {
        const Next next = alarm_->second;
        alarm_.reset();
        next();
    }
}

std::optional<TimePoint> Workload::next_deadline() const {
    if (over_ || quitting_ || !alarm_) return std::nullopt;
    return alarm_->first;
}

void Workload::leave() {
    leaving_ = true;
}

void Workload::quit() {
    quitting_ = true;
    alarm_.reset();
    awaited_.reset();
    step_ = "quits";
    node_->close(now());
}

void Workload::stop() {
    say("was evicted");
    evicted_ = over_ = true;
    step_ = "was evicted";
}

void Workload::check_times() const {
    if (over_ || quitting_) return;
    for (const auto& call : calls_) rules_->check_time(call->began, state());
}

// Steps.

void Workload::begin(std::string step, Next next) {
    step_ = std::move(step);
    next_ = std::move(next);
    failure_.reset();
    finished_.clear();
    starting_ = true;
}

void Workload::start(std::unique_ptr<Call> call, const std::string& text) {
    call->text = text;
    call->began = now();
    Call& one = *call;
    calls_.push_back(std::move(call));
    ++rules_->counts.operations;
    engine::Engine& engine = node_->engine();
    switch (one.what) {
        case Call::What::collective:
            return engine.start(*world_, *one.collective);
        case Call::What::send:
            return engine.start(*world_, *one.send);
        case Call::What::receive:
            return engine.start(*world_, *one.receive);
        case Call::What::agreement:
            return engine.start(*world_, *one.agreement);
    }
}

void Workload::agree(wire::AgreementKind kind, std::uint64_t flags, engine::WorldPlan plan) {
    auto call = std::make_unique<Call>();
    call->what = Call::What::agreement;
    call->agreement = std::make_unique<engine::AgreeOperation>();
    engine::AgreeOperation& operation = *call->agreement;
    operation.owner = call.get();
    operation.what = kind;
    operation.flags = flags;
    operation.fingerprint = plan.excluded.size();
    operation.plan = std::move(plan);
    operation.words = {round_};
    operation.newest = node_->members().view().epoch;
    operation.timeout = std::chrono::hours(1);
    start(std::move(call), fmt::format("agreement of kind {}", static_cast<int>(kind)));
}

void Workload::ended(engine::Operation& operation) {
    const auto found = std::ranges::find_if(
        calls_, [&](const auto& call) { return call.get() == operation.owner; });
    if (found == calls_.end()) return rules_->fail("P1", "an operation ends twice: " + state());
    std::unique_ptr<Call> call = std::move(*found);
    calls_.erase(found);
    if (quitting_) return;
    rules_->check_time(call->began, fmt::format("machine {}: {}", machine_, call->text));
    if (operation.error) {
        ++rules_->counts.errors;
        say(fmt::format("{} fails: {}", call->text, operation.error->what()));
        if (!is_expected(operation.error->code())) {
            rules_->fail("P1", fmt::format("machine {}: {} ended with an unexpected error: {}",
                                           machine_, call->text, operation.error->what()));
        }
        if (!failure_) {
            failure_ = *operation.error;
            // The other ranks may wait for this one inside the step.
            if (!recovering_) node_->engine().revoke(*world_);
        }
    } else {
        check(*call);
    }
    finished_.push_back(std::move(call));
    if (calls_.empty() && !starting_) finish_step();
}

/// Operations that end while others of their step start are polled only later, so this follows the
/// last start.
void Workload::finish_step() {
    // Not from within a call of the engine.
    later(Duration::zero(), [this] {
        if (failure_) return recover(*failure_);
        const Next next = std::exchange(next_, {});
        next();
    });
}

void Workload::check(Call& call) {
    if (call.what == Call::What::receive) check_receive(call);
    if (call.what != Call::What::agreement) return;
    const engine::AgreeOperation& agreed = *call.agreement;
    if (!agreed.resumed && (agreed.agreed_flags & ~agreed.flags) != 0) {
        rules_->fail("P3", fmt::format("machine {} did not set all of the agreed flags", machine_));
    }
    rules_->agreed(world_->id, agreed.number,
                   {.plan = agreed.plan,
                    .flags = agreed.agreed_flags,
                    .lost = agreed.lost,
                    .epoch = agreed.epoch,
                    .creation = agreed.creation,
                    .words = agreed.agreed_words});
}

void Workload::check_receive(const Call& call) {
    const std::uint64_t number = rules_->receives(world_->id, call.peer, node_->self().node);
    const bool whole = call.receive->envelope.bytes == call.out.size() * sizeof(std::uint64_t);
    if (whole && call.out == letter(call.peer, world_->id, number, call.out.size())) return;
    rules_->fail("P6", fmt::format("machine {} received {} bytes of message {} instead of message "
                                   "{} of communicator {:016x}",
                                   machine_, call.receive->envelope.bytes, call.out[2], number,
                                   world_->id.value()));
}

// Rounds.

/// All ranks go on from the highest round of any of them.
void Workload::sync() {
    begin("enters a world", [this] {
        if (last().out[0] < round_) rules_->fail("P6", "a maximum is too small: " + state());
        round_ = last().out[0] + 1;
        think();
    });
    start(reduce_call(*world_, ReduceOp::max, {round_}), "all_reduce of rounds");
    starting_ = false;
}

void Workload::think() {
    step_ = "thinks";
    const auto more = static_cast<Duration::rep>(
        random_.below(static_cast<std::uint64_t>(Duration(kPause).count())));
    later(kPause / 2 + Duration(more), [this] { round(); });
}

void Workload::round() {
    constexpr std::array<std::size_t, 5> kCounts{1, 16, 300, 2000, 6000};
    constexpr std::array<std::size_t, 4> kLetters{3, 60, 1500, 9000};
    const std::uint64_t dice = mixed(world_->id.value() ^ round_);
    const std::size_t count = kCounts.at(dice % kCounts.size());
    const NodeId& self = node_->self().node;
    begin(fmt::format("runs round {}", round_), [this] { after_round(); });
    Words mine(count);
    const Share share = share_of(self, world_->id, round_);
    for (std::size_t i = 0; i < count; ++i) mine[i] = share[i];
    start(reduce_call(*world_, ReduceOp::sum, std::move(mine)), fmt::format("sum {}", round_));
    if (nodes_.size() > 1) {
        const std::size_t me = world_->me.value();
        const std::size_t apart = 1 + (dice >> 8U) % (nodes_.size() - 1);
        const std::size_t to = (me + apart) % nodes_.size();
        const std::size_t from = (me + nodes_.size() - apart) % nodes_.size();
        const std::size_t words = kLetters.at((dice >> 20U) % kLetters.size());
        const std::uint64_t number = rules_->sends(world_->id, self, nodes_[to]);
        start(receive_call(Rank(static_cast<std::uint32_t>(from)), nodes_[from], words),
              fmt::format("receive {}", round_));
        start(send_call(Rank(static_cast<std::uint32_t>(to)),
                        letter(self, world_->id, number, words)),
              fmt::format("send {}", round_));
    }
    starting_ = false;
}

void Workload::check_sum(const Words& sum, std::uint64_t round) {
    ++rules_->counts.sums;
    Share wanted;
    for (const NodeId& node : nodes_) {
        const Share share = share_of(node, world_->id, round);
        wanted.first += share.first;
        wanted.step += share.step;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
        if (sum[i] == wanted[i]) continue;
        rules_->fail("P6", fmt::format("machine {}: element {} of the sum of round {} is wrong",
                                       machine_, i, round));
        return;
    }
}

void Workload::after_round() {
    for (const auto& call : finished_) {
        if (call->what == Call::What::collective) check_sum(call->out, round_);
    }
    const std::uint64_t done = round_++;
    ++rounds_;
    const auto then = [this, done] {
        if (done % kCheckpointEvery == 0) return checkpoint();
        think();
    };
    if (done % kAgreeEvery != 0) return then();
    begin("agrees", then);
    agree(wire::AgreementKind::agree, share_of(node_->self().node, world_->id, done).first | 1U);
    starting_ = false;
}

/// What Node::elastic_checkpoint() does.
void Workload::checkpoint() {
    begin("looks for changes", [this] {
        const bool grows = last().out[0] != 0;
        const bool shrinks = last().out[1] == 0;
        if (!grows && !shrinks) return think();
        gather_leavers();
    });
    start(reduce_call(*world_, ReduceOp::min,
                      {node_->epoch_with_others(*world_), leaving_ ? 0U : 1U}),
          "all_reduce of a checkpoint");
    starting_ = false;
}

}  // namespace nexar::chaos
