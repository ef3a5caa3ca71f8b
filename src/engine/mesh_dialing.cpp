// Which addresses of a peer are tried when, and which link is kept.

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
    way.addresses = best_first(way.member.addresses, own_);
    way.next = 0;
    way.next_at = now;
    way.in_round = true;
    way.round_at = now;
    way.beside_at = now + options_.beside;
    way.outcomes.clear();
}

void Mesh::dial_next(TimePoint now, Way& way) {
    const Address& address = way.addresses[way.next];
    const std::size_t place = way.next++;
    way.next_at = now + options_.stagger;
    const auto id = dialer_->dial(now, address, way.member.node);
    if (!id) {
        note(way, address, id.error().cause());
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
    std::vector<Candidate*> same;
    for (Candidate* one : way.candidates) {
        const bool dialing = one->state == Candidate::State::dialing;
        if (one->dialed && dialing && one->place == place) same.push_back(one);
    }
    if (same.size() <= options_.most_beside) return;
    note(way, address, "no answer", true);
    drop(**std::ranges::min_element(same, {}, &Candidate::begun), "another attempt is tried");
}

/// All addresses once more, beside the attempts under way.
void Mesh::dial_beside(TimePoint now, Way& way) {
    way.next = 0;
    way.next_at = now;
    way.round_at = now;  // takes a slot like a new round
    way.beside_at = now + options_.beside_again;
}

/// What there is to choose from for one peer.
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
    const bool all_tried = way.next == way.addresses.size();
    if (all_tried && dialing && now >= way.beside_at && !slot_free_at(now)) dial_beside(now, way);
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
    ++changes_;
    if (Candidate* const offer = choice(way).offer) welcome(*offer, way);
}

void Mesh::on_dial_failed(TimePoint now, Candidate& candidate, const Error& reason) {
    Way* const way = way_to(candidate.node);
    if (way == nullptr) return;
    std::erase(way->candidates, &candidate);
    if (way->connected || closing_) return;
    if (candidate.dialed && candidate.state != Candidate::State::closing) {
        if (candidate.address) {
            note(*way, *candidate.address, reason.cause(), reason.code() == Errc::timed_out);
        }
    }
    if (way->in_round) look_at(now, *way);
}

void Mesh::note(Way& way, const Address& address, std::string outcome, bool silent) {
    std::erase_if(way.outcomes, [&](const Outcome& one) { return one.address == address; });
    if (way.outcomes.size() >= kMostOutcomes) return;
    way.outcomes.push_back({.address = address, .text = std::move(outcome), .silent = silent});
}

/// What became of the addresses that did not win. Those that are silent are named together, without
/// loopback for a peer on another host, which nobody expects to answer.
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
        // What the other end offers stays until our own choice has worked.
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
    if (quiet_) return std::nullopt;
    std::optional<TimePoint> due;
    const auto at = [&](TimePoint time) { due = due ? std::min(*due, time) : time; };
    const auto slot = slot_free_at(now_);
    for (const auto& [node, way] : ways_) {
        if (!way.wanted || way.connected) continue;
        if (way.give_up_at) at(*way.give_up_at);
        if (const auto time = due_of(way, slot)) at(*time);
    }
    for (const auto& [id, candidate] : candidates_) {
        if (is_held(*candidate)) at(candidate->held_until);
    }
    return due;
}

/// When look_at() has something to do, or the next round begins; `slot`: when one is free.
std::optional<TimePoint> Mesh::due_of(const Way& way, std::optional<TimePoint> slot) const {
    const Choice all = choice(way);
    if (all.chosen != nullptr) return std::nullopt;  // only an event changes that
    if (!way.in_round) return std::max(way.next_at, slot.value_or(way.next_at));
    if (all.best != nullptr) return all.best->up_at + options_.grace;
    const bool all_tried = way.next == way.addresses.size();
    TimePoint due = all_tried ? std::max(way.beside_at, slot.value_or(way.beside_at)) : way.next_at;
    if (all.offer != nullptr) due = std::min(due, all.offer->up_at + options_.grace);
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

}  // namespace nexar::engine
