#include "agreement_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agreement_model_node.hpp"
#include "base/mix.hpp"

namespace nexar::testing {

namespace {

using engine::AgreeOperation;
using wire::AgreementKind;
using namespace std::chrono_literals;

constexpr std::size_t kMostNodes = 16;
constexpr std::size_t kDeepest = 3;

bool ends_its_communicator(AgreementKind kind) {
    return kind == AgreementKind::shrink || kind == AgreementKind::exclude;
}

}  // namespace

AgreementModel::Counts& AgreementModel::Counts::operator+=(const Counts& other) {
    returned += other.returned;
    crashes += other.crashes;
    views += other.views;
    shrunk += other.shrunk;
    differences += other.differences;
    timeouts += other.timeouts;
    resumed += other.resumed;
    return *this;
}

AgreementModel::AgreementModel(std::uint64_t seed) : seed_(seed), random_(seed * 31 + 7) {
    const std::size_t size = 2 + random_.below(random_.chance(0.5) ? 4 : kMostNodes - 1);
    View first{.epoch = Epoch(1), .next_rank = Rank(static_cast<std::uint32_t>(size))};
    for (std::size_t i = 0; i < size; ++i) {
        nodes_.push_back(std::make_unique<Node>(*this, i));
        first.members.push_back({.node = node_id(i), .rank = Rank(static_cast<std::uint32_t>(i))});
    }
    views_.push_back(first);
    for (const auto& node : nodes_) node->agreements.set_view(first);
    crash_rate_ = random_.uniform() * 0.02;
    crash_after_return_ = random_.chance(0.5) ? random_.uniform() * 0.3 : 0;
    view_rate_ = 0.01 + random_.uniform() * 0.05;
    learn_rate_ = 0.02 + random_.uniform() * 0.2;
    hasty_ = random_.chance(0.3) ? random_.uniform() * 0.3 : 0;
    together_ = 1 + random_.below(3);
    unconnected_ = random_.chance(0.3);
    const std::size_t communicators = 1 + random_.below(3);
    for (std::uint64_t id = 1; id <= communicators; ++id) {
        std::vector<std::size_t> members;
        for (std::size_t i = 0; i < size; ++i) {
            if (id == 1 || random_.chance(0.7)) members.push_back(i);
        }
        for (std::size_t i = members.size(); i > 1; --i) {
            std::swap(members[i - 1], members[random_.below(i)]);
        }
        if (members.empty()) continue;
        Group& group = add_group(ContextId(id), {}, members);
        for (const std::size_t i : members) enter(*nodes_[i], group);
    }
}

AgreementModel::~AgreementModel() = default;

void AgreementModel::say(const std::string& what) const {
    if (trace) fmt::print("{}\n", what);
}

void AgreementModel::fail(const std::string& what) {
    if (!failure_) failure_ = fmt::format("seed {}: {}", seed_, what);
}

bool AgreementModel::in(const View& view, std::size_t node) const {
    const Member* const member = view.find(node_id(node));
    return member != nullptr && member->rank.value() == node;  // not one that joined again
}

std::optional<Rank> AgreementModel::Group::rank_of(std::size_t node) const {
    const auto found = std::ranges::find(members, node);
    if (found == members.end()) return std::nullopt;
    return Rank(static_cast<std::uint32_t>(found - members.begin()));
}

AgreementModel::Group& AgreementModel::add_group(ContextId id, ContextId parent,
                                                 std::vector<std::size_t> members) {
    Group group{.id = id, .parent = parent, .members = std::move(members)};
    const std::uint64_t chance = mixed(seed_ ^ id.value());
    group.length = 1 + chance % (chance % 8 == 0 ? 40 : 5);
    const auto made_from = groups_.find(parent);
    if (made_from != groups_.end()) group.depth = made_from->second.depth + 1;
    return groups_.emplace(id, std::move(group)).first->second;
}

void AgreementModel::enter(Node& node, Group& group) {
    std::vector<NodeId> members;
    members.reserve(group.members.size());
    for (const std::size_t i : group.members) members.push_back(node_id(i));
    node.locals[group.id];
    node.agreements.add(group.id, members, *group.rank_of(node.index), group.parent);
}

/// What the programme calls: the same on all ranks, with a few exceptions. Returns nullopt for an
/// excluded rank that calls nothing.
std::optional<AgreementModel::Call> AgreementModel::call_of(const Group& group,
                                                            std::uint64_t number, Rank rank) {
    const std::uint64_t plan = mixed(seed_ ^ mixed(group.id.value() ^ mixed(number)));
    const auto size = static_cast<std::uint32_t>(group.members.size());
    const auto pick = [&](unsigned bits, std::uint64_t n) { return (plan >> bits) % n; };
    Call call{.kind = AgreementKind::agree, .fingerprint = plan};
    call.flags = random_.next() | random_.next();
    for (std::uint64_t& word : call.words) word = random_.below(1000);
    if (number + 1 == group.length) {
        if (pick(0, 10) < 6) call.kind = AgreementKind::shrink;
        if (pick(0, 10) >= 8 && size > 2) call.kind = AgreementKind::exclude;
    } else if (pick(0, 4) == 0) {
        call.kind = pick(4, 2) == 0 ? AgreementKind::grow : AgreementKind::checkpoint;
    }
    if (call.kind == AgreementKind::exclude) {
        for (std::uint32_t i = 0; i < size; ++i) {
            const bool stays = i == pick(32, size);
            if (!stays && mixed(plan + i) % 4 == 0) call.excluded.emplace_back(i);
        }
        if (std::ranges::binary_search(call.excluded, rank)) {
            if (pick(8, 2) == 0) return std::nullopt;
            call.kind = AgreementKind::agree;
            call.excluded.clear();
            ++call.fingerprint;
        }
    }
    if (pick(16, 12) == 0 && pick(20, size) == rank.value()) {
        call.fingerprint += 2;
        if (pick(26, 3) == 1) call.kind = AgreementKind::checkpoint;
        if (pick(26, 3) == 2 && size > 1) {
            call.kind = AgreementKind::exclude;
            call.excluded = {Rank(rank.value() == 0 ? 1 : rank.value() - 1)};
        }
    }
    return call;
}

/// Starts what the programme of a node does next. Returns false if it has nothing to do now.
bool AgreementModel::start_some(Node& node) {
    std::vector<Group*> ready;
    for (auto& [id, local] : node.locals) {
        Group& group = groups_.at(id);
        const bool more = local.next < group.length || local.again;
        if (local.stopped || !more || local.pending >= together_) continue;
        ready.push_back(&group);
    }
    if (ready.empty()) return false;
    return start(node, *ready[random_.below(ready.size())]);
}

bool AgreementModel::start(Node& node, Group& group) {
    Node::Local& local = node.locals.at(group.id);
    const Rank rank = *group.rank_of(node.index);
    const bool again = std::exchange(local.again, false);
    const auto call = call_of(group, again ? local.next - 1 : local.next, rank);
    if (!call) {
        local.stopped = true;
        return true;
    }
    // Of an interrupted split; the earlier call of a resumed one cannot know of it.
    if (!again && random_.chance(0.2)) local.creations += random_.below(3);
    auto owned = std::make_unique<AgreeOperation>();
    AgreeOperation& operation = *owned;
    operation.what = call->kind;
    operation.flags = call->flags;
    operation.excluded = call->excluded;
    operation.fingerprint = call->fingerprint;
    operation.newest = views_[node.view].epoch;
    operation.words = call->words;
    operation.creations = local.creations;
    operation.timeout = Duration(24h);
    if (!calm_ && random_.chance(hasty_)) operation.timeout = Duration(random_.below(100'000'000));
    operation.active = true;
    node.operations.push_back(std::move(owned));
    say(fmt::format("{} (rank {}) calls number {} in {:x}: kind {}, {:x}, excludes {}", node.index,
                    rank.value(), local.next, group.id.value(), static_cast<int>(call->kind),
                    call->fingerprint, call->excluded.size()));
    node.agreements.start(group.id, operation);
    if (operation.error && operation.error->code() == Errc::too_many_pending) {
        std::erase(node.done, &operation);
        node.forget(operation);
        return false;
    }
    ++local.pending;
    if (operation.resumed) {
        ++counts_.resumed;
        if (operation.number + 1 != local.next) fail("a shrink resumed a wrong number");
        settle(node);
        return true;
    }
    if (again) fail("a shrink that had timed out began anew");
    if (operation.number != local.next) fail("an operation got a wrong number");
    Call made = *call;
    made.creations = operation.creations;
    group.numbers[local.next].calls.emplace(rank, made);
    ++local.next;
    settle(node);
    return true;
}

/// Handles the operations that have ended.
void AgreementModel::settle(Node& node) {
    while (node.alive && !node.done.empty() && !failure_) {
        AgreeOperation& operation = *node.done.front();
        node.done.pop_front();
        on_end(node, operation);
        node.forget(operation);
        if (!calm_ && random_.chance(crash_after_return_)) crash(node);
    }
}

void AgreementModel::on_end(Node& node, AgreeOperation& operation) {
    Group& group = groups_.at(operation.context_id);
    const Number& number = group.numbers.at(operation.number);
    --node.locals.at(group.id).pending;
    say(fmt::format("{} ends number {} in {:x}: {}", node.index, operation.number, group.id.value(),
                    operation.error ? operation.error->what() : "agreed"));
    if (!operation.error) {
        ++counts_.returned;
        check(node, group, operation);
        if (operation.number + 1 == group.length) follow(node, group, operation);
        return;
    }
    switch (operation.error->code()) {
        case Errc::timed_out:
        case Errc::cancelled:
            ++counts_.timeouts;
            if (operation.number + 1 != group.length) return;
            // Without another shrink it cannot know the next communicator.
            node.locals.at(group.id).again = operation.what == AgreementKind::shrink;
            if (operation.what == AgreementKind::exclude) crash(node);
            return;
        case Errc::membership_changed:  // if some are lost and the calls differ in kind
        case Errc::invalid_argument: {
            ++counts_.differences;
            const Call& own = number.calls.at(*group.rank_of(node.index));
            if (std::ranges::none_of(number.calls, [&](const auto& entry) {
                    return entry.second.fingerprint != own.fingerprint;
                })) {
                fail(fmt::format("equal calls were said to differ: {}", operation.error->cause()));
            }
            return;
        }
        default:
            fail(fmt::format("unexpected error {}", operation.error->what()));
    }
}

/// Compares a result with those of other nodes, and with the only one that is right for its view.
void AgreementModel::check(const Node& node, const Group& group, const AgreeOperation& operation) {
    Number& number = groups_.at(group.id).numbers.at(operation.number);
    const std::string where = fmt::format("node {} in communicator {:x}, number {}", node.index,
                                          group.id.value(), operation.number);
    const Returned returned{.flags = operation.agreed_flags,
                            .lost = operation.lost,
                            .epoch = operation.epoch,
                            .creation = operation.creation,
                            .words = operation.agreed_words};
    const Call& own = number.calls.at(*group.rank_of(node.index));
    if (number.returned.emplace(own.fingerprint, returned).first->second != returned) {
        return fail(where + " returned another value than an earlier node");
    }
    const auto view = std::ranges::find(views_, returned.epoch, &View::epoch);
    if (view == views_.end()) return fail(where + " returned an epoch that does not exist");
    Returned right{.flags = ~std::uint64_t{0}, .epoch = returned.epoch};
    for (std::uint32_t i = 0; i < group.members.size(); ++i) {
        const Rank rank(i);
        if (!in(*view, group.members[i])) {
            right.lost.push_back(rank);
            continue;
        }
        if (std::ranges::binary_search(own.excluded, rank)) continue;
        const auto call = number.calls.find(rank);
        if (call == number.calls.end()) {
            return fail(fmt::format("{} returned before rank {} called", where, i));
        }
        if (call->second.fingerprint != own.fingerprint) {
            return fail(
                fmt::format("{} returned although rank {} called something else", where, i));
        }
        right.flags &= call->second.flags;
        right.creation = std::max(right.creation, call->second.creations);
        for (std::size_t word = 0; word < right.words.size(); ++word) {
            right.words[word] = std::max(right.words[word], call->second.words[word]);
        }
    }
    // Earlier agreements may have led to a larger one.
    right.creation = std::max(right.creation, returned.creation);
    if (right != returned) {
        fail(fmt::format("{} returned a value that is wrong for epoch {}", where,
                         returned.epoch.value()));
    }
}

/// Makes the communicator that was agreed on.
void AgreementModel::follow(Node& node, Group& group, const AgreeOperation& operation) {
    if (!ends_its_communicator(operation.what) || group.depth >= kDeepest) return;
    std::vector<std::size_t> members;
    for (std::uint32_t i = 0; i < group.members.size(); ++i) {
        if (std::ranges::binary_search(operation.lost, Rank(i)) ||
            std::ranges::binary_search(operation.excluded, Rank(i))) {
            continue;
        }
        members.push_back(group.members[i]);
    }
    Node::Local& local = node.locals.at(group.id);
    if (local.creations != operation.creation)
        fail(fmt::format("node {} has made {} communicators, but the ranks agreed on {}",
                         node.index, local.creations, operation.creation));
    ++local.creations;
    const ContextId id(mixed(group.id.value() ^ mixed(operation.creation) ^
                             mixed(operation.epoch.value() + 1000) ^ operation.fingerprint));
    if (!groups_.contains(id)) {
        ++counts_.shrunk;
        add_group(id, group.id, members);
    }
    Group& child = groups_.at(id);
    if (child.members != members) return fail("two nodes shrank to different members");
    enter(node, child);
    local.stopped = true;
    if (local.pending == 0 && random_.chance(0.5)) node.agreements.end(group.id);
}

}  // namespace nexar::testing
