// Which addresses of a peer are tried when, and which link is kept.

#include "engine/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/address_order.hpp"
#include "base/assert.hpp"

namespace nexar::engine {

namespace {

constexpr std::size_t kMostOutcomes = 16;

double milliseconds(Duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
}

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
    return all;
}

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
    for (const Member& member : view.members) {
        if (member.node == me) continue;
        const auto [at, fresh] = ways_.try_emplace(member.node);
        Way& way = at->second;
        way.member = member;
        way.report.rank = member.rank;
        way.report.node = member.node;
        if (!fresh || !options_.eager) continue;
        way.wanted = true;
        // If both began at the same time one of them would do so in vain.
        const auto members = static_cast<Duration::rep>(view.members.size());
        const Duration wait = options_.deference + members * options_.deference_each;
        way.next_at = rank_ < member.rank ? now + wait : now;
    }
    nearest_first_.clear();
    nearest_first_.reserve(ways_.size());
    for (auto& [node, way] : ways_) nearest_first_.push_back(&way);
    std::ranges::sort(nearest_first_, {}, [&](const Way* way) {
        return rank_.value() - way->member.rank.value();  // around the circle
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

Mesh::Way* Mesh::way_to(const NodeId& node) noexcept {
    const auto found = ways_.find(node);
    return found == ways_.end() ? nullptr : &found->second;
}

bool Mesh::decides(const Way& way) const noexcept {
    return me_ < way.member.node;
}

void Mesh::turn(TimePoint now) {
    if (quiet_ && !engine_->has_wanted()) return;
    now_ = now;
    spent_.clear();
    if (closing_) return;
    while (const auto node = engine_->poll_wanted()) {
        Way* const way = way_to(*node);
        if (way == nullptr || way->connected) continue;
        way->wanted = true;
        if (!way->give_up_at && !options_.eager) way->give_up_at = now + options_.patience;
    }
    for (Way* const at : nearest_first_) {
        Way& way = *at;
        if (!way.wanted || way.connected) continue;
        if (way.give_up_at && now >= *way.give_up_at) {
            way.connected = true;
            close_others(way, nullptr, "it took too long");
            engine_->give_up(
                way.member.node,
                Error(Errc::timed_out,
                      fmt::format("no address of the peer answers: {}", joined(way.outcomes)),
                      {.rank = way.member.rank}));
            ++changes_;
            continue;
        }
        if (!way.in_round && now >= way.next_at && !slot_free_at(now)) begin_round(now, way);
        if (way.in_round) look_at(now, way);
    }
    std::vector<Candidate*> late;
    for (const auto& [id, candidate] : candidates_) {
        if (is_held(*candidate) && now >= candidate->held_until) late.push_back(candidate.get());
    }
    for (Candidate* candidate : late) {
        drop(*candidate, ways_.contains(candidate->node) ? "you did not say hello in time"
                                                         : "no view names you");
    }
    quiet_ = !anything_under_way();
}

bool Mesh::anything_under_way() const noexcept {
    return !candidates_.empty() || !spent_.empty() ||
           std::ranges::any_of(ways_, [](const auto& entry) {
               return entry.second.wanted && !entry.second.connected;
           });
}

void Mesh::begin_round(TimePoint now, Way& way) {
    way.addresses = best_first(way.member.addresses, own_);
    way.next = 0;
    way.next_at = now;
    way.in_round = true;
    way.round_at = now;
    way.outcomes.clear();
}

void Mesh::dial_next(TimePoint now, Way& way) {
    const Address& address = way.addresses[way.next];
    const std::size_t place = way.next++;
    way.next_at = now + options_.stagger;
    const auto id = dialer_->dial(now, address, way.member.node);
    if (!id) {
        way.outcomes.push_back(fmt::format("{}: {}", address.text(), id.error().cause()));
        way.next_at = now;
        return;
    }
    auto owned = std::make_unique<Candidate>();
    Candidate& candidate = *owned;
    candidate.id = *id;
    candidate.node = way.member.node;
    candidate.dialed = true;
    candidate.address = address;
    candidate.place = place;
    candidate.begun = now;
    way.candidates.push_back(&candidate);
    candidates_.emplace(*id, std::move(owned));
}

/// What there is to choose from for one peer.
Mesh::Choice Mesh::choice(const Way& way) {
    using State = Candidate::State;
    Choice all;
    std::optional<std::size_t> best_dialing;
    for (Candidate* candidate : way.candidates) {
        if (candidate->state == State::closing) continue;
        if (!candidate->dialed) {
            if (candidate->state == State::greeted && all.offer == nullptr) all.offer = candidate;
        } else if (candidate->state == State::greeted) {
            all.chosen = candidate;
        } else if (candidate->state == State::dialing) {
            all.dialing = true;
            best_dialing = std::min(best_dialing.value_or(candidate->place), candidate->place);
        } else if (all.best == nullptr || candidate->place < all.best->place) {
            all.best = candidate;
        }
    }
    all.better_dialing = all.best != nullptr && best_dialing && *best_dialing < all.best->place;
    return all;
}

/// One address after the other, and the first that answers unless a better one is still on its way.
void Mesh::look_at(TimePoint now, Way& way) {
    auto [chosen, best, offer, dialing, better_dialing] = choice(way);
    if (chosen != nullptr) return;  // its answer decides
    if (best != nullptr) {
        if (better_dialing && now < best->up_at + options_.grace) return;
        close_others(way, best, "another address was better");
        say_hello(*best);
        return;
    }
    if (offer != nullptr && now >= offer->up_at + options_.grace) {
        // The way here is open and the one there seems not to be. Nothing was said on our own links
        // yet, so the other end waits for this one.
        welcome(*offer, way);
        return;
    }
    while (way.next < way.addresses.size() && (now >= way.next_at || !dialing)) {
        dial_next(now, way);
        dialing = true;
    }
    if (!choice(way).dialing && way.next == way.addresses.size()) end_round(now, way);
}

/// No address led to the peer: what it offers is taken, else all are tried again later.
void Mesh::end_round(TimePoint now, Way& way) {
    way.in_round = false;
    way.pause =
        way.pause == Duration{} ? options_.pause : std::min(2 * way.pause, options_.longest_pause);
    way.next_at = now + way.pause;
    way.report.why = joined(way.outcomes);
    ++changes_;
    if (Candidate* const offer = choice(way).offer) welcome(*offer, way);
}

bool Mesh::handle(TimePoint now, const port::Event& event) {
    if (const auto* up = std::get_if<port::Up>(&event.what)) {
        if (up->joiner) return false;
        now_ = now;
        quiet_ = false;
        auto& owned = candidates_[event.link];
        const bool fresh = !owned;
        if (fresh) owned = std::make_unique<Candidate>();
        Candidate& candidate = *owned;
        candidate.id = event.link;
        candidate.link = up->link;
        candidate.node = up->link->peer().node;
        candidate.up_at = now;
        if (candidate.state == Candidate::State::closing || closing_) {
            drop(candidate, "no longer wanted");
            return true;
        }
        candidate.state = Candidate::State::up;
        if (fresh) hold(now, candidate);
        Way* const way = way_to(candidate.node);
        if (way != nullptr && way->in_round) look_at(now, *way);
        return true;
    }
    const auto found = candidates_.find(event.link);
    if (found == candidates_.end()) return false;
    now_ = now;
    quiet_ = false;
    if (const auto* down = std::get_if<port::Down>(&event.what)) {
        const std::unique_ptr<Candidate> gone = std::move(found->second);
        candidates_.erase(found);
        on_dial_failed(now, *gone, down->reason);
    }
    return true;
}

void Mesh::on_dial_failed(TimePoint now, Candidate& candidate, const Error& reason) {
    Way* const way = way_to(candidate.node);
    if (way == nullptr) return;
    std::erase(way->candidates, &candidate);
    if (way->connected || closing_) return;
    if (candidate.dialed && candidate.state != Candidate::State::closing) {
        note(*way, candidate, reason.cause());
    }
    if (way->in_round) look_at(now, *way);
}

void Mesh::note(Way& way, const Candidate& candidate, std::string_view outcome) {
    if (way.outcomes.size() >= kMostOutcomes || !candidate.address) return;
    way.outcomes.push_back(fmt::format("{}: {}", candidate.address->text(), outcome));
}

void Mesh::drop(Candidate& candidate, std::string_view why) {
    candidate.state = Candidate::State::closing;
    if (candidate.link != nullptr) {
        candidate.link->close(why);
    } else {
        dialer_->abandon(candidate.id);
    }
}

void Mesh::close_others(Way& way, const Candidate* kept, std::string_view why) {
    for (Candidate* candidate : way.candidates) {
        const bool offered = !candidate->dialed;
        if (candidate == kept || candidate->state == Candidate::State::closing) continue;
        // What the other end offers stays until our own choice has worked.
        if (offered && kept != nullptr && kept->dialed && !way.connected) continue;
        if (!offered) {
            const bool up = candidate->state != Candidate::State::dialing;
            note(way, *candidate,
                 fmt::format("{} in {:.1f} ms", up ? "answered" : "no answer",
                             milliseconds((up ? candidate->up_at : now_) - candidate->begun)));
        }
        drop(*candidate, why);
    }
}

std::optional<TimePoint> Mesh::next_deadline() const {
    if (quiet_) return std::nullopt;
    std::optional<TimePoint> due;
    const auto at = [&](TimePoint time) { due = due ? std::min(*due, time) : time; };
    const auto slot = slot_free_at(now_);
    for (const auto& [node, way] : ways_) {
        if (!way.wanted || way.connected) continue;
        if (way.give_up_at) at(*way.give_up_at);
        const Choice all = choice(way);
        if (!way.in_round) {
            at(std::max(way.next_at, slot.value_or(way.next_at)));
        } else if (all.chosen != nullptr) {
            // Only an event changes that.
        } else if (all.best != nullptr) {
            at(all.best->up_at + options_.grace);
        } else {
            if (way.next < way.addresses.size()) at(way.next_at);
            if (all.offer != nullptr) at(all.offer->up_at + options_.grace);
        }
    }
    for (const auto& [id, candidate] : candidates_) {
        if (is_held(*candidate)) at(candidate->held_until);
    }
    return due;
}

/// When the next round may begin; nothing: now.
std::optional<TimePoint> Mesh::slot_free_at(TimePoint now) const noexcept {
    std::size_t taken = 0;
    std::optional<TimePoint> first;
    for (const auto& [node, way] : ways_) {
        const TimePoint end = way.round_at + options_.slot;
        if (!way.in_round || now >= end) continue;
        ++taken;
        first = first ? std::min(*first, end) : end;
    }
    return taken < options_.max_rounds ? std::nullopt : first;
}

/// An accepted link that may not stay as it is for long.
bool Mesh::is_held(const Candidate& candidate) const noexcept {
    if (candidate.dialed || candidate.state == Candidate::State::closing) return false;
    return candidate.state == Candidate::State::up || !ways_.contains(candidate.node);
}

bool Mesh::complete() const noexcept {
    return std::ranges::all_of(ways_, [](const auto& entry) { return entry.second.connected; });
}

std::size_t Mesh::connected() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(ways_, [](const auto& entry) { return entry.second.connected; }));
}

std::vector<PeerReport> Mesh::reports() const {
    std::vector<PeerReport> all;
    all.reserve(ways_.size());
    for (const auto& [node, way] : ways_) all.push_back(way.report);
    std::ranges::sort(all, {}, &PeerReport::rank);
    return all;
}

void Mesh::close() {
    closing_ = true;
    for (const auto& [id, candidate] : candidates_) drop(*candidate, "the node was closed");
}

void Mesh::hand_over(Candidate& candidate, Way& way) {
    way.connected = true;
    way.in_round = false;
    way.report.connected = true;
    way.report.dialed = candidate.dialed;
    way.report.address = candidate.address;
    way.report.took = candidate.up_at - candidate.begun;
    way.report.why = candidate.dialed
                         ? fmt::format("answered in {:.1f} ms{}{}", milliseconds(way.report.took),
                                       way.outcomes.empty() ? "" : "; ", joined(way.outcomes))
                         : "it dialed this node";
    ++changes_;
    close_others(way, &candidate, "another link is used");
    std::erase(way.candidates, &candidate);
    const auto found = candidates_.find(candidate.id);
    std::unique_ptr<Candidate> owned = std::move(found->second);
    candidates_.erase(found);
    const bool taken = engine_->take_over(*owned->link, std::move(owned->reader));
    if (!taken) owned->link->close("not wanted any more");
    spent_.push_back(std::move(owned));
}

}  // namespace nexar::engine
