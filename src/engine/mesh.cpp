// The mesh as a whole: its view, its timers, and how it hands links to the engine.

#include "engine/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::engine {

namespace {

/// A link has a limit for the streams of its peer, which is much lower.
constexpr std::size_t kMostEarlyEvents = 4096;

}  // namespace

Mesh::Mesh(Engine& engine, Dialer& dialer, const MeshOptions& options)
    : engine_(&engine), dialer_(&dialer), options_(options) {}

Mesh::~Mesh() = default;

void Mesh::adopt(TimePoint now, const View& view, const NodeId& me) {
    now_ = now;
    view_ = view;
    me_ = me;
    const Member* const own = view.find(me);
    NEXAR_ASSERT(own != nullptr);
    rank_ = own->rank;
    for (const auto& [id, candidate] : candidates_) {
        const bool closing = candidate->state == Candidate::State::closing;
        if (candidate->dialed && !closing && view.find(candidate->node) == nullptr) {
            drop(*candidate, "you are not a member of the current view");
        }
    }
    std::erase_if(ways_, [&](const auto& entry) { return view.find(entry.first) == nullptr; });
    std::erase_if(handed_over_, [&](const auto& entry) { return !ways_.contains(entry.second); });
    for (const Member& member : view.members) {
        if (member.node != me) adopt_member(now, member);
    }
    nearest_first_.clear();
    nearest_first_.reserve(ways_.size());
    for (auto& [node, way] : ways_) nearest_first_.push_back(&way);
    std::ranges::sort(nearest_first_, {}, [&](const Way* way) {
        return rank_.value() - way->member.rank.value();  // wraps around
    });
    std::vector<Candidate*> held;
    for (const auto& [id, candidate] : candidates_) {
        if (!candidate->dialed) held.push_back(candidate.get());
    }
    for (Candidate* candidate : held) consider(*candidate);
    ++changes_;
    quiet_ = false;
    turn(now);
}

void Mesh::adopt_member(TimePoint now, const Member& member) {
    const auto [at, fresh] = ways_.try_emplace(member.node, member.node, options_);
    Way& way = at->second;
    way.member = member;
    way.report.rank = member.rank;
    way.report.node = member.node;
    const bool was_neighbour = std::exchange(way.neighbour, is_neighbour(member.node));
    way.path.set_home(now, way.neighbour, direct_addresses(member));
    if (!fresh && way.neighbour != was_neighbour) redirect(now, way);
    if (!way.neighbour || was_neighbour || !options_.eager) return;
    way.wanted = true;
    if (!way.connected) defer(now, way);
}

/// If both dialed at the same time, one of the links would be useless.
void Mesh::defer(TimePoint earliest, Way& way) {
    const auto members = static_cast<Duration::rep>(view_.members.size());
    const Duration wait = options_.deference + members * options_.deference_each;
    way.race.stop_until(rank_ < way.member.rank ? earliest + wait : earliest);
}

/// The link of a pair was lost although both are members. Tries until there is another one, or a
/// view without the peer.
void Mesh::connect_again(TimePoint now, Way& way) {
    const bool was_doubted = std::exchange(way.doubted, false);
    way.connected = false;
    way.wanted = true;
    way.needed = true;
    way.give_up_at.reset();
    way.race.set_longest_wait(options_.again_every);
    if (Candidate* const offer = choice(way).offer) return consider(*offer);
    if (was_doubted && way.race.running()) return;
    defer(now + options_.again, way);
}

Mesh::Way* Mesh::way_to(const NodeId& node) noexcept {
    const auto found = ways_.find(node);
    return found == ways_.end() ? nullptr : &found->second;
}

bool Mesh::decides(const Way& way) const noexcept {
    return me_ < way.member.node;
}

void Mesh::turn(TimePoint now) {
    if (quiet_ && now < paths_due_ && !engine_->has_wanted()) return;
    now_ = now;
    spent_.clear();
    if (closing_) return;
    take_wanted(now);
    look_at_ways(now);
    drop_late(now);
    turn_paths(now);
    quiet_ = !anything_under_way();
}

void Mesh::take_wanted(TimePoint now) {
    while (const auto node = engine_->poll_wanted()) {
        Way* const way = way_to(*node);
        if (way == nullptr) continue;
        if (way->connected) {
            if (engine_->awaits_link(*node)) {
                connect_again(now, *way);
            } else if (engine_->is_connected(*node) && engine_->is_doubtful(*node)) {
                doubt(now, *way);
            }
            continue;
        }
        way->wanted = true;
        way->needed = true;
        if (!way->give_up_at && !options_.eager) way->give_up_at = now + options_.patience;
    }
}

void Mesh::look_at_ways(TimePoint now) {
    // Rounds come first, because dialing silent peers again takes slots as well.
    for (Way* const way : nearest_first_) {
        const bool idle = way->open() && !way->race.running();
        if (!idle || now < way->race.next_round_at() || choice(*way).chosen != nullptr) continue;
        if (!slot_free_at(now)) begin_round(now, *way);
    }
    for (Way* const at : nearest_first_) {
        Way& way = *at;
        if (!way.open()) continue;
        if (way.give_up_at && now >= *way.give_up_at) {
            give_up(way, Error(Errc::timed_out,
                               fmt::format("no address of the peer answers: {}", outcomes(way)),
                               {.rank = public_rank(way.member.rank)}));
            continue;
        }
        if (way.race.running()) look_at(now, way);
    }
}

/// Drops accepted links that have waited too long for a Hello or a view.
void Mesh::drop_late(TimePoint now) {
    std::vector<Candidate*> late;
    for (const auto& [id, candidate] : candidates_) {
        if (is_held(*candidate) && now >= candidate->held_until) late.push_back(candidate.get());
    }
    for (Candidate* candidate : late) {
        drop(*candidate, ways_.contains(candidate->node) ? "you did not send a hello in time"
                                                         : "no view contains your node");
    }
}

/// Called when the peer cannot be reached: fails the operations that wait for it.
void Mesh::give_up(Way& way, const Error& reason) {
    way.connected = true;
    way.doubted = false;
    way.race.stop_until(now_);
    close_others(way, nullptr, "this node gave up on the peer");
    engine_->give_up(way.member.node, reason);
    ++changes_;
}

bool Mesh::anything_under_way() const noexcept {
    return !candidates_.empty() || !spent_.empty() ||
           std::ranges::any_of(ways_, [](const auto& entry) { return entry.second.open(); });
}

bool Mesh::handle(TimePoint now, const port::LinkEvent& event) {
    if (const auto* up = std::get_if<port::Up>(&event.what)) {
        if (up->joiner) return false;
        on_up(now, event.link, *up->link);
        return true;
    }
    const auto found = candidates_.find(event.link);
    if (found == candidates_.end()) {
        follow(now, event);
        return false;
    }
    now_ = now;
    quiet_ = false;
    if (const auto* down = std::get_if<port::Down>(&event.what)) {
        const std::unique_ptr<Candidate> gone = std::move(found->second);
        candidates_.erase(found);
        on_dial_failed(now, *gone, down->reason);
    } else if (std::holds_alternative<port::Opened>(event.what) ||
               std::holds_alternative<port::Aborted>(event.what)) {
        // The peer already uses the link, and the Confirm that precedes its streams is late.
        auto& early = found->second->early;
        if (early.size() < kMostEarlyEvents) early.push_back(event);
    }
    return true;
}

void Mesh::on_up(TimePoint now, port::LinkId id, port::Link& link) {
    now_ = now;
    quiet_ = false;
    auto& owned = candidates_[id];
    const bool fresh = !owned;
    if (fresh) owned = std::make_unique<Candidate>();
    Candidate& candidate = *owned;
    candidate.id = id;
    candidate.link = &link;
    candidate.node = link.peer().node;
    candidate.up_at = now;
    if (candidate.state == Candidate::State::closing) {
        return drop(candidate, "this link is no longer needed");
    }
    if (closing_) return say_goodbye(candidate, *closing_);
    candidate.state = Candidate::State::up;
    if (fresh) hold(now, candidate);
    Way* const way = way_to(candidate.node);
    if (way == nullptr) return;
    way->race.ended(candidate.id);
    if (way->race.running()) look_at(now, *way);
}

void Mesh::drop(Candidate& candidate, std::string_view why) {
    candidate.state = Candidate::State::closing;
    if (Way* const way = way_to(candidate.node)) way->race.ended(candidate.id);
    if (candidate.link == nullptr) {
        dialer_->abandon(candidate.id);
    } else if (has_left_ && candidate.link->remote().is_tunnel()) {
        candidate.link->drop(why);
    } else {
        candidate.link->close(why);
    }
}

/// True for an accepted link that the mesh drops unless it makes progress.
bool Mesh::is_held(const Candidate& candidate) const noexcept {
    if (candidate.dialed || candidate.state == Candidate::State::closing) return false;
    return candidate.state == Candidate::State::up || !ways_.contains(candidate.node);
}

bool Mesh::complete() const noexcept {
    return std::ranges::all_of(
        ways_, [](const auto& entry) { return entry.second.connected || !entry.second.neighbour; });
}

std::size_t Mesh::connected() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(ways_, [](const auto& entry) { return entry.second.connected; }));
}

std::vector<PeerReport> Mesh::reports() const {
    std::vector<PeerReport> all;
    all.reserve(ways_.size());
    for (const auto& [node, way] : ways_) {
        all.push_back(way.report);
        all.back().neighbour = way.neighbour;
        all.back().tunnel = way.path.in_tunnel();
        if (!way.connected) all.back().why = outcomes(way);
    }
    std::ranges::sort(all, {}, &PeerReport::rank);
    return all;
}

void Mesh::close(const Error& why, bool has_left) {
    closing_ = why;
    has_left_ = has_left;
    for (const auto& [id, candidate] : candidates_) say_goodbye(*candidate, why);
}

void Mesh::hand_over(Candidate& candidate, Way& way) {
    way.connected = true;
    way.connected_at = now_;
    way.race.set_longest_wait(Duration::max());
    way.race.stop_until(now_);
    way.redirected = false;
    way.report.connected = true;
    way.report.dialed = candidate.dialed;
    way.report.address = candidate.address;
    way.report.took = candidate.up_at - candidate.begun;
    way.report.why = "the peer dialed this node";
    if (candidate.dialed) {
        const std::string others = outcomes(way);
        const auto took = std::chrono::duration<double, std::milli>(way.report.took);
        way.report.why = fmt::format("answered in {:.1f} ms{}{}", took.count(),
                                     others.empty() ? "" : "; ", others);
    }
    ++changes_;
    close_others(way, &candidate, "another link was chosen");
    std::erase(way.candidates, &candidate);
    // If the engine does not take it, the reader lives until its link is down: it may be our
    // caller.
    if (!engine_->take_over(*candidate.link, candidate.reader, candidate.said_bytes)) {
        drop(candidate, "this link is no longer needed");
        return;
    }
    watch(candidate, way);
    const auto found = candidates_.find(candidate.id);
    for (const port::LinkEvent& event : std::exchange(candidate.early, {})) engine_->handle(event);
    spent_.push_back(std::move(found->second));
    candidates_.erase(found);
}

}  // namespace nexar::engine
