// Dials the addresses of a peer, and decides which link is kept.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/address_order.hpp"
#include "engine/mesh.hpp"

namespace nexar::engine {

namespace {

constexpr std::size_t kMostOutcomes = 16;

double milliseconds(Duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
}

}  // namespace

void Mesh::begin_round(TimePoint now, Way& way) {
    Duration tunnel_after{};
    if (way.neighbour && options_.tunnels) {
        tunnel_after = way.report.connected ? options_.again : first_tunnel_after();
    }
    way.race.begin(now, addresses_to_dial(way), tunnel_after);
    way.redirected = false;
    way.outcomes.clear();
}

/// While many links form at once, it is not their paths that make peers slow to answer.
Duration Mesh::first_tunnel_after() const {
    const auto open = std::ranges::count_if(
        nearest_first_, [](const Way* way) { return way->neighbour && way->open(); });
    return options_.tunnel_after + std::max<std::ptrdiff_t>(open - 1, 0) * options_.deference_each;
}

void Mesh::dial(TimePoint now, Way& way, const AddressRace::Attempt& attempt) {
    const auto id = dialer_->dial(now, attempt.address, way.member.node);
    if (!id) {
        note(way, attempt.address, id.error().cause());
        way.race.failed(now);
        return;
    }
    auto owned = std::make_unique<Candidate>();
    Candidate& candidate = *owned;
    candidate.id = *id;
    candidate.node = way.member.node;
    candidate.dialed = true;
    candidate.address = attempt.address;
    candidate.place = attempt.place;
    candidate.begun = now;
    way.candidates.push_back(&candidate);
    candidates_.emplace(*id, std::move(owned));
    if (const auto surplus = way.race.dialed(now, attempt, *id)) {
        note(way, attempt.address, "no answer", true);
        drop(*candidates_.at(*surplus), "another attempt is in progress");
    }
}

/// The candidates for the link to one peer.
Mesh::Choice Mesh::choice(const Way& way) {
    using State = Candidate::State;
    Choice all;
    std::optional<std::size_t> best_dialing;
    for (Candidate* candidate : way.candidates) {
        if (candidate->state == State::closing) continue;
        if (!candidate->dialed) {
            if (candidate->state == State::welcomed) all.chosen = candidate;
            if (candidate->state == State::greeted && all.offer == nullptr) all.offer = candidate;
        } else if (candidate->state == State::greeted) {
            all.chosen = candidate;
        } else if (candidate->state == State::dialing) {
            best_dialing = std::min(best_dialing.value_or(candidate->place), candidate->place);
        } else if (all.best == nullptr || candidate->place < all.best->place) {
            all.best = candidate;
        }
    }
    all.better_dialing = all.best != nullptr && best_dialing && *best_dialing < all.best->place;
    return all;
}

/// Takes the first address that answers, unless an attempt at a better one is in flight; otherwise
/// dials the next address.
void Mesh::look_at(TimePoint now, Way& way) {
    if (leave_old_round(now, way)) return;
    if (way.doubted) return look_at_doubted(now, way);
    const auto [chosen, best, offer, better_dialing] = choice(way);
    if (chosen != nullptr) return;  // wait for its answer
    if (best != nullptr) {
        if (better_dialing && now < best->up_at + options_.grace) return;
        close_others(way, best, "another address was better");
        say_hello(*best);
        return;
    }
    if (offer != nullptr && now >= offer->up_at + options_.grace) {
        // The peer reaches us, and we do not seem to reach it. We have not sent Hello on our own
        // links, so the other end waits for an answer on this one.
        welcome(*offer, way);
        return;
    }
    dial_next(now, way);
}

/// The peer is connected, but its link does not seem to work. An address that answers while that
/// stays so shows that the path works and the link does not.
void Mesh::look_at_doubted(TimePoint now, Way& way) {
    if (!engine_->is_doubtful(way.member.node)) {
        way.doubted = false;
        way.race.stop_until(now);
        return close_others(way, nullptr, "the first link works again");
    }
    const Candidate* const best = choice(way).best;
    if (best == nullptr) return dial_next(now, way);
    // Down follows, and connect_again().
    if (now >= grace_ends(way, *best)) engine_->lose_links(way.member.node);
}

/// Until when something better than `best` is awaited.
TimePoint Mesh::grace_ends(const Way& way, const Candidate& best) const {
    if (!way.doubted) return best.up_at + options_.grace;
    // The handshake took a few round trips. Where that took long, because the processors have much
    // else to do, so does the next packet on the first link.
    const Duration twice = 2 * (best.up_at - best.begun);
    return best.up_at +
           std::clamp(twice, options_.grace, std::max(options_.grace, options_.longest_grace));
}

void Mesh::dial_next(TimePoint now, Way& way) {
    // Dialing all addresses again takes a slot like a new round.
    AddressRace& race = way.race;
    const bool may_repeat = race.all_dialed() && now >= race.due() && !slot_free_at(now);
    while (const auto attempt = race.next(now, may_repeat)) dial(now, way, *attempt);
    if (race.exhausted()) end_round(now, way);
}

/// Called when no address led to the peer: takes the link that the peer offers, or tries all
/// addresses again later.
void Mesh::end_round(TimePoint now, Way& way) {
    way.race.end_round(now);
    ++changes_;
    Candidate* const offer = choice(way).offer;
    if (offer != nullptr && !way.connected) welcome(*offer, way);
}

void Mesh::on_dial_failed(TimePoint now, Candidate& candidate, const Error& reason) {
    Way* const way = way_to(candidate.node);
    if (way == nullptr) return;
    std::erase(way->candidates, &candidate);
    way->race.ended(candidate.id);
    if (leave_old_round(now, *way) || !way->open() || closing_) return;
    if (candidate.dialed && candidate.state != Candidate::State::closing) {
        if (candidate.address) {
            note(*way, *candidate.address, reason.cause(), reason.code() == Errc::timed_out);
        }
    }
    if (way->race.running()) look_at(now, *way);
}

void Mesh::note(Way& way, const Address& address, std::string outcome, bool silent) {
    std::erase_if(way.outcomes, [&](const Outcome& one) { return one.address == address; });
    if (way.outcomes.size() >= kMostOutcomes) return;
    way.outcomes.push_back({.address = address, .text = std::move(outcome), .silent = silent});
}

/// The outcome of the addresses that did not win. Silent ones are listed together, without the
/// loopback address of a peer on another host, which cannot answer.
std::string Mesh::outcomes(const Way& way) const {
    std::vector<Address> silent;
    const bool elsewhere = !seem_to_share_host(way.member.addresses, own_);
    const auto add_silent = [&](const Address& address) {
        if (elsewhere && address.is_loopback()) return;
        if (std::ranges::find(silent, address) == silent.end()) silent.push_back(address);
    };
    std::string all;
    for (const Outcome& one : way.outcomes) {
        if (one.silent) {
            add_silent(one.address);
        } else {
            all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", one.address.text(), one.text);
        }
    }
    for (const Candidate* one : way.candidates) {
        if (one->state == Candidate::State::dialing && one->address) add_silent(*one->address);
    }
    if (silent.empty()) return all;
    std::string names;
    for (const Address& address : silent) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", address.text());
    }
    return fmt::format("{}{}no answer from {}; does a firewall let UDP pass both ways?", all,
                       all.empty() ? "" : "; ", names);
}

void Mesh::close_others(Way& way, const Candidate* kept, std::string_view why) {
    for (Candidate* candidate : way.candidates) {
        const bool offered = !candidate->dialed;
        if (candidate == kept || candidate->state == Candidate::State::closing) continue;
        // Keep the link that the other end offers until our own choice has worked.
        if (offered && kept != nullptr && kept->dialed && !way.connected) continue;
        if (!offered) {
            const bool up = candidate->state != Candidate::State::dialing;
            note(way, candidate->address.value(),
                 fmt::format("{} in {:.1f} ms", up ? "answered" : "no answer",
                             milliseconds((up ? candidate->up_at : now_) - candidate->begun)));
        }
        drop(*candidate, why);
    }
}

std::optional<TimePoint> Mesh::next_deadline() const {
    if (closing_) return std::nullopt;  // turn() does nothing any more
    std::optional<TimePoint> due;
    const auto at = [&](TimePoint time) { due = due ? std::min(*due, time) : time; };
    if (paths_due_ != TimePoint::max()) at(paths_due_);
    if (quiet_) return due;
    const auto slot = slot_free_at(now_);
    for (const auto& [node, way] : ways_) {
        if (!way.open()) continue;
        if (way.give_up_at) at(*way.give_up_at);
        if (const auto time = due_of(way, slot)) at(*time);
    }
    for (const auto& [id, candidate] : candidates_) {
        if (is_held(*candidate)) at(candidate->held_until);
    }
    return due;
}

/// When look_at() has something to do, or the next round begins. `slot`: when a slot becomes free.
std::optional<TimePoint> Mesh::due_of(const Way& way, std::optional<TimePoint> slot) const {
    const Choice all = choice(way);
    if (all.chosen != nullptr) return std::nullopt;  // until an event arrives
    const AddressRace& race = way.race;
    if (!race.running()) return std::max(race.due(), slot.value_or(race.due()));
    if (all.best != nullptr) return grace_ends(way, *all.best);
    TimePoint due = race.due();
    if (race.all_dialed() && slot) due = std::max(due, *slot);
    if (all.offer != nullptr) due = std::min(due, all.offer->up_at + options_.grace);
    return due;
}

/// When the next round may begin; nullopt: now.
std::optional<TimePoint> Mesh::slot_free_at(TimePoint now) const noexcept {
    std::size_t taken = 0;
    std::optional<TimePoint> first;
    for (const auto& [node, way] : ways_) {
        const TimePoint end = way.race.pass_began_at() + options_.slot;
        if (!way.race.running() || now >= end) continue;
        ++taken;
        first = first ? std::min(*first, end) : end;
    }
    return taken < options_.max_rounds ? std::nullopt : first;
}

}  // namespace nexar::engine
