#include "runtime/members/node_members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.hpp"

namespace nexar::runtime {

namespace {

std::vector<std::uint32_t> numbers(const std::vector<Rank>& ranks) {
    std::vector<std::uint32_t> all;
    all.reserve(ranks.size());
    for (const Rank rank : ranks) all.push_back(rank.value());
    return all;
}

std::string_view name(membership::Hint hint) noexcept {
    switch (hint) {
        case membership::Hint::doubtful:
            return "a packet was refused, or its link broke";
        case membership::Hint::gone:
            return "its process has ended";
        case membership::Hint::left:
            return "it left in good order";
        case membership::Hint::connected:
            return "a link to it came up";
    }
    return "unknown";
}

}  // namespace

void NodeMembers::begin(TimePoint now, const Identity& self, const View& view,
                        const membership::Options& options) {
    self_ = self;
    budget_ = options.budget;
    views_.push_back(view);
    membership_ = std::make_unique<membership::Membership>(now, self,
                                                           membership::Vote{.view = view}, options);
    tell_engine(view, {});
}

/// A node of `lost` may be in the view, as another process: then it is a new peer.
void NodeMembers::tell_engine(const View& view, std::span<const NodeId> lost) {
    engine_->set_view(view);
    if (!lost.empty()) engine_->evict(lost, view.epoch);
    for (const Member& member : view.members) {
        if (member.node != self_.node) engine_->add_peer(member.node);
    }
}

void NodeMembers::turn(TimePoint now, SeedLine* seed) {
    if (!membership_) return;
    now_ = now;
    const bool came = take_messages(now, seed);
    const auto due = next_deadline();
    if (!came && (!due || now < *due)) return;
    membership_->turn(now);
    release_departed();
    // A member's vote need not survive its process. Keeping one may lead to the next.
    while (membership_->unkept()) membership_->kept();
    if (seed != nullptr && budget_ != Duration::zero()) {
        constexpr int kPatience = 10;
        if (const auto witness = seed->better_witness(now, kPatience * budget_)) {
            membership_->propose_witness(now, *witness);
        }
    }
    take_events(seed);
    send_messages(seed);
}

/// Returns true if there was anything.
bool NodeMembers::take_messages(TimePoint now, SeedLine* seed) {
    bool came = std::exchange(asked_, false);
    while (const auto hint = engine_->poll_hint()) {
        NEXAR_LOG_DEBUG("{}: {}", described(hint->node), name(hint->hint));
        membership_->hint(now, hint->node, hint->hint);
        came = true;
    }
    while (const auto news = engine_->poll_membership()) {
        membership_->handle(now, news->from, false, news->message);
        came = true;
    }
    if (seed == nullptr) return came;
    while (const auto news = seed->poll_membership()) {
        membership_->handle(now, news->from, true, news->message);
        came = true;
    }
    return came;
}

void NodeMembers::send_messages(SeedLine* seed) {
    while (const auto outgoing = membership_->poll_outgoing()) {
        if (view().find(outgoing->to) != nullptr) {
            engine_->send_membership(outgoing->to, outgoing->message);
        } else if (seed != nullptr) {
            seed->send_membership(outgoing->to, outgoing->message);
        }
    }
}

std::optional<TimePoint> NodeMembers::next_deadline() const {
    if (!membership_) return std::nullopt;
    const auto next = membership_->next_deadline();
    if (departed_.empty()) return next;
    const TimePoint due = departed_.front().first;
    return next ? std::min(*next, due) : due;
}

/// Cuts the links to members that have left and are silent: a path that was cut also loses the
/// goodbye.
void NodeMembers::release_departed() {
    while (!departed_.empty() && departed_.front().first <= now_) {
        const auto [due, node] = departed_.front();
        departed_.pop_front();
        if (engine_->release(node, due - budget_)) departed_.emplace_back(now_ + budget_, node);
    }
}

void NodeMembers::take_events(SeedLine* seed) {
    while (const auto event = membership_->poll_event()) {
        std::visit([this](const auto& one) { on(one); }, *event);
        const auto* const decided = std::get_if<membership::Decided>(&*event);
        if (decided != nullptr && seed != nullptr) seed->set_view(decided->view);
    }
}

std::string NodeMembers::described(const NodeId& node) const {
    const Member* const member = view().find(node);
    if (member == nullptr) return fmt::format("node {}", node.to_hex());
    return fmt::format("rank {} on {}", member->rank.value(), member->host);
}

void NodeMembers::on(const membership::Decided& decided) {
    const View before = view();
    views_.back().spent = {};  // only the newest view must be complete
    views_.push_back(decided.view);
    if (views_.size() > kMostViews) views_.pop_front();
    const auto nodes_of = [&](const std::vector<Rank>& ranks) {
        std::vector<NodeId> nodes;
        for (const Member& member : before.members) {
            if (std::ranges::find(ranks, member.rank) != ranks.end()) nodes.push_back(member.node);
        }
        return nodes;
    };
    const std::vector<NodeId> lost = nodes_of(decided.lost);
    if (!lost.empty()) {
        NEXAR_LOG_WARNING("epoch {}: rank {} failed; {} members are left",
                          decided.view.epoch.value(), fmt::join(numbers(decided.lost), ", "),
                          decided.view.members.size());
    }
    tell_engine(decided.view, lost);
    for (const NodeId& node : nodes_of(decided.left)) {
        if (budget_ != Duration::zero()) {
            departed_.emplace_front(now_, node);
        } else {
            engine_->release(node, TimePoint::min());  // silence proves nothing
        }
    }
    release_departed();
    if (!decided.joined.empty()) {
        NEXAR_LOG_INFO("epoch {}: rank {} joined", decided.view.epoch.value(),
                       fmt::join(numbers(decided.joined), ", "));
    }
    decided_.push_back(decided);
}

void NodeMembers::on(const membership::Evicted& evicted) {
    if (std::exchange(evicted_, true) || leaving_) return;
    NEXAR_LOG_ERROR(
        "the other members evicted this process in epoch {} because they could not reach it; it "
        "must join again",
        evicted.view.epoch.value());
    engine_->expel(evicted.view.epoch);
}

void NodeMembers::on(const membership::Minority& minority) {
    if (budget_ == Duration::zero()) return;  // nobody waits for verdicts
    minority_ = minority.minority;
    if (leaving_) return;  // the others may have closed their nodes as well
    if (minority_) {
        NEXAR_LOG_ERROR(
            "this process cannot reach a majority of the {} voters of epoch {}; its calls fail "
            "until it can",
            view().voters(), view().epoch.value());
    } else {
        NEXAR_LOG_WARNING("this process reaches a majority of the voters again");
    }
    engine_->set_minority(minority_);
}

void NodeMembers::on(const membership::Unreachable& unreachable) {
    if (budget_ == Duration::zero()) return;
    if (!unreachable.unreachable) return engine_->set_reachable(unreachable.node);
    const Member* const own = view().find(self_.node);
    const Error reason(Errc::peer_unreachable,
                       fmt::format("rank {} cannot reach {}, although other members hear from it",
                                   own == nullptr ? std::string("of this process")
                                                  : fmt::format("{}", own->rank.value()),
                                   described(unreachable.node)));
    NEXAR_LOG_WARNING("{}", reason.cause());
    engine_->set_unreachable(unreachable.node, reason);
}

std::optional<membership::Decided> NodeMembers::poll_decided() {
    if (decided_.empty()) return std::nullopt;
    membership::Decided first = std::move(decided_.front());
    decided_.pop_front();
    return first;
}

const View* NodeMembers::view_of(Epoch epoch) const noexcept {
    const auto found = std::ranges::find(views_, epoch, &View::epoch);
    return found == views_.end() ? nullptr : &*found;
}

const Member* NodeMembers::find(const NodeId& node) const noexcept {
    for (auto view = views_.rbegin(); view != views_.rend(); ++view) {
        if (const Member* const member = view->find(node)) return member;
    }
    return nullptr;
}

const Member* NodeMembers::find(Rank rank) const noexcept {
    for (auto view = views_.rbegin(); view != views_.rend(); ++view) {
        if (const Member* const member = view->find(rank)) return member;
    }
    return nullptr;
}

std::optional<Rank> NodeMembers::rank_of(const NodeId& node) const noexcept {
    const Member* const member = find(node);
    if (member == nullptr) return std::nullopt;
    return member->rank;
}

bool NodeMembers::can_leave() const noexcept {
    return membership_ && !evicted_ && !minority_ && view().members.size() > 1;
}

void NodeMembers::leave(TimePoint now) {
    leaving_ = asked_ = true;
    if (membership_) membership_->leave(now);
}

}  // namespace nexar::runtime
