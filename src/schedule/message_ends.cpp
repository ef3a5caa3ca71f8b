#include "schedule/message_ends.hpp"

#include <algorithm>
#include <tuple>

namespace nexar::schedule {

namespace {

struct End {
    std::uint64_t pair;  // sender and receiver
    std::uint32_t message;
    bool receives;
    MessageEnds::Place place;

    auto key() const { return std::tuple(pair, message, receives); }
};

std::vector<End> all_ends(std::span<const Schedule> ranks) {
    std::vector<End> ends;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        const auto& steps = ranks[rank].steps;
        for (std::uint32_t i = 0; i < steps.size(); ++i) {
            if (!is_message(steps[i].kind)) continue;
            const bool in = receives(steps[i].kind);
            const std::uint64_t from = in ? steps[i].peer : rank;
            const std::uint64_t to = in ? rank : steps[i].peer;
            ends.push_back({from << 32U | to, steps[i].message, in, {rank, i}});
        }
    }
    std::sort(ends.begin(), ends.end(),
              [](const End& a, const End& b) { return a.key() < b.key(); });
    return ends;
}

}  // namespace

MessageEnds match_messages(std::span<const Schedule> ranks) {
    MessageEnds found;
    found.other.reserve(ranks.size());
    for (const Schedule& schedule : ranks)
        found.other.emplace_back(schedule.steps.size(), MessageEnds::kNone);
    const std::vector<End> ends = all_ends(ranks);
    for (std::size_t i = 0; i < ends.size(); i += 2) {
        const End& send = ends[i];
        const bool two = i + 1 < ends.size() && ends[i + 1].pair == send.pair &&
                         ends[i + 1].message == send.message && !send.receives &&
                         ends[i + 1].receives;
        if (!two) {
            found.unmatched = send.place;
            return found;
        }
        const End& receive = ends[i + 1];
        found.other[send.place.rank][send.place.step] = receive.place.step;
        found.other[receive.place.rank][receive.place.step] = send.place.step;
    }
    return found;
}

}  // namespace nexar::schedule
