#include "unit/schedule/mutations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace nexar::schedule::testing {

namespace {

using Ranks = std::vector<Schedule>;
using Mutations = std::vector<Mutation>;

/// Plants `change(step)` in every step of every rank for which it returns true.
template <class Change>
void plant(Mutations& found, const Ranks& right, const char* what, const Change& change) {
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
        for (std::size_t i = 0; i < right[rank].steps.size(); ++i) {
            Ranks wrong = right;
            if (!change(wrong[rank].steps[i])) continue;
            found.push_back(
                {fmt::format("{} in step {} of rank {}", what, i, rank), std::move(wrong)});
        }
    }
}

/// The slices that a step uses.
std::vector<Slice Step::*> slices(const Step& step) {
    std::vector<Slice Step::*> used;
    if (reads_from(step.kind)) used.push_back(&Step::from);
    if (folds(step.kind)) used.push_back(&Step::local);
    if (writes_into(step.kind)) used.push_back(&Step::into);
    return used;
}

void plant_moved(Mutations& found, const Ranks& right) {
    for (const auto slice : {&Step::from, &Step::local, &Step::into}) {
        for (const bool later : {true, false}) {
            plant(found, right, later ? "slice moved forward" : "slice moved back",
                  [&](Step& step) {
                      const auto used = slices(step);
                      if (std::find(used.begin(), used.end(), slice) == used.end()) return false;
                      Slice& s = step.*slice;
                      if (s.count == 0 || (!later && s.offset == 0)) return false;
                      s.offset += later ? 1 : std::uint64_t(0) - 1;
                      return true;
                  });
        }
    }
}

Step* other_end(Ranks& ranks, std::size_t rank, const Step& step) {
    for (Step& other : ranks[step.peer].steps)
        if (is_message(other.kind) && other.peer == rank && other.message == step.message &&
            receives(other.kind) != receives(step.kind))
            return &other;
    return nullptr;
}

void shorten(Step& step) {
    for (const auto slice : slices(step)) --(step.*slice).count;
}

void plant_shortened(Mutations& found, const Ranks& right) {
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
        for (std::size_t i = 0; i < right[rank].steps.size(); ++i) {
            if (receives(right[rank].steps[i].kind) || right[rank].steps[i].count() == 0) continue;
            Ranks wrong = right;
            Step& step = wrong[rank].steps[i];
            if (step.kind == Kind::send) shorten(*other_end(wrong, rank, step));
            shorten(step);
            found.push_back({fmt::format("step {} of rank {} is one element short", i, rank),
                             std::move(wrong)});
        }
    }
}

/// Plants `change` in every dependency for which it returns true.
template <class Change>
void plant_in_dependencies(Mutations& found, const Ranks& right, const Change& change) {
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
        for (std::size_t i = 0; i < right[rank].steps.size(); ++i) {
            const Step& step = right[rank].steps[i];
            for (std::uint32_t k = 0; k < step.dependency_count; ++k) {
                Ranks wrong = right;
                if (!change(wrong[rank], wrong[rank].steps[i], step.first_dependency + k)) continue;
                const Dependency& dependency = right[rank].dependencies_of(i)[k];
                found.push_back({fmt::format("dependency of step {} of rank {} on step {}", i, rank,
                                             dependency.step),
                                 std::move(wrong), static_cast<std::uint32_t>(rank),
                                 static_cast<std::uint32_t>(i), dependency});
            }
        }
    }
}

void plant_exchanged(Mutations& found, const Ranks& right) {
    for (const auto slice : {&Step::from, &Step::local, &Step::into}) {
        for (std::size_t rank = 0; rank < right.size(); ++rank) {
            const auto& steps = right[rank].steps;
            for (std::size_t i = 0; i < steps.size(); ++i) {
                for (std::size_t k = i + 1; k < steps.size(); ++k) {
                    if (steps[i].kind != steps[k].kind) continue;
                    if (steps[i].*slice == steps[k].*slice) continue;
                    if ((steps[i].*slice).count != (steps[k].*slice).count) continue;
                    Ranks wrong = right;
                    std::swap(wrong[rank].steps[i].*slice, wrong[rank].steps[k].*slice);
                    found.push_back(
                        {fmt::format("slices of steps {} and {} of rank {} swapped", i, k, rank),
                         std::move(wrong)});
                }
            }
        }
    }
}

/// Keeps the step, so that the numbers of others do not change, but makes it a copy of no elements.
void blank(Step& step) {
    Step nothing;
    nothing.into = {Space::output, 0, 0};
    nothing.first_dependency = step.first_dependency;
    nothing.dependency_count = 0;
    step = nothing;
}

void plant_left_out(Mutations& found, const Ranks& right) {
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
        for (std::size_t i = 0; i < right[rank].steps.size(); ++i) {
            if (receives(right[rank].steps[i].kind)) continue;
            Ranks wrong = right;
            Step& step = wrong[rank].steps[i];
            if (step.kind == Kind::send) blank(*other_end(wrong, rank, step));
            blank(step);
            found.push_back(
                {fmt::format("step {} of rank {} is missing", i, rank), std::move(wrong)});
        }
    }
}

}  // namespace

bool ordered_by_messages(const Mutation& left_out) {
    if (left_out.dependency.event == Milestone::released) return false;
    const Ranks& ranks = left_out.schedules;
    // (rank, step) pairs that end after the dependency; the search continues from their ends.
    std::set<std::pair<std::uint32_t, std::uint32_t>> later;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> open{
        {left_out.rank, left_out.dependency.step}};
    while (!open.empty()) {
        const auto [rank, ended] = open.back();
        open.pop_back();
        for (std::uint32_t i = 0; i < ranks[rank].steps.size(); ++i) {
            const auto waits = ranks[rank].dependencies_of(i);
            const bool starts_later =
                std::any_of(waits.begin(), waits.end(), [&](const Dependency& d) {
                    return d.step == ended && d.event == Milestone::finished;
                });
            if (!starts_later) continue;
            if (rank == left_out.rank && i == left_out.step) return true;
            if (later.insert({rank, i}).second) open.push_back({rank, i});
            const Step& step = ranks[rank].steps[i];
            if (step.kind != Kind::send) continue;
            for (std::uint32_t k = 0; k < ranks[step.peer].steps.size(); ++k) {
                const Step& other = ranks[step.peer].steps[k];
                if (receives(other.kind) && other.peer == rank && other.message == step.message &&
                    later.insert({step.peer, k}).second)
                    open.push_back({step.peer, k});
            }
        }
    }
    return false;
}

const std::vector<Planted>& all_planted() {
    static const std::vector<Planted> all{
        Planted::wrong_peer,        Planted::wrong_message,       Planted::slice_moved,
        Planted::slice_shortened,   Planted::dependency_left_out, Planted::release_not_awaited,
        Planted::side_exchanged,    Planted::slices_exchanged,    Planted::step_left_out,
        Planted::pipelined_wrongly, Planted::place_moved,         Planted::stage_changed};
    return all;
}

std::string name(Planted planted) {
    switch (planted) {
        case Planted::wrong_peer:
            return "wrong_peer";
        case Planted::wrong_message:
            return "wrong_message";
        case Planted::slice_moved:
            return "slice_moved";
        case Planted::slice_shortened:
            return "slice_shortened";
        case Planted::dependency_left_out:
            return "dependency_left_out";
        case Planted::release_not_awaited:
            return "release_not_awaited";
        case Planted::side_exchanged:
            return "side_exchanged";
        case Planted::slices_exchanged:
            return "slices_exchanged";
        case Planted::place_moved:
            return "place_moved";
        case Planted::stage_changed:
            return "stage_changed";
        case Planted::step_left_out:
            return "step_left_out";
        case Planted::pipelined_wrongly:
            return "pipelined_wrongly";
    }
    return "";
}

std::vector<Mutation> mutations(Planted planted, const std::vector<Schedule>& schedules) {
    Mutations found;
    const auto world = static_cast<std::uint32_t>(schedules.size());
    switch (planted) {
        case Planted::wrong_peer:
            plant(found, schedules, "peer", [&](Step& step) {
                step.peer = (step.peer + 1) % world;
                return is_message(step.kind);
            });
            break;
        case Planted::wrong_message:
            plant(found, schedules, "message number", [](Step& step) {
                ++step.message;
                return is_message(step.kind);
            });
            break;
        case Planted::place_moved:
            plant(found, schedules, "place", [](Step& step) {
                ++step.place;
                return is_message(step.kind);
            });
            break;
        case Planted::stage_changed:
            plant(found, schedules, "stage", [](Step& step) {
                step.stage ^= 1U;
                return is_message(step.kind);
            });
            break;
        case Planted::side_exchanged:
            plant(found, schedules, "side", [](Step& step) {
                step.side =
                    step.side == compute::Side::left ? compute::Side::right : compute::Side::left;
                return folds(step.kind);
            });
            break;
        case Planted::slice_moved:
            plant_moved(found, schedules);
            break;
        case Planted::slice_shortened:
            plant_shortened(found, schedules);
            break;
        case Planted::slices_exchanged:
            plant_exchanged(found, schedules);
            break;
        case Planted::step_left_out:
            plant_left_out(found, schedules);
            break;
        case Planted::dependency_left_out:
            plant_in_dependencies(found, schedules, [](Schedule& s, Step& step, std::uint32_t at) {
                // Replaced by the last dependency of the step.
                s.dependencies[at] =
                    s.dependencies[step.first_dependency + --step.dependency_count];
                return true;
            });
            break;
        case Planted::release_not_awaited:
            plant_in_dependencies(found, schedules, [](Schedule& s, Step&, std::uint32_t at) {
                return std::exchange(s.dependencies[at].event, Milestone::finished) ==
                       Milestone::released;
            });
            break;
        case Planted::pipelined_wrongly:
            plant_in_dependencies(found, schedules, [](Schedule& s, Step& step, std::uint32_t at) {
                Dependency& d = s.dependencies[at];
                const bool segments = step.segments() > 1 || s.steps[d.step].segments() > 1;
                return !std::exchange(d.pipelined, true) && segments;
            });
            break;
    }
    return found;
}

}  // namespace nexar::schedule::testing
