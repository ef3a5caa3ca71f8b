// Barrier: no rank leaves before every rank has entered. Messages carry no elements.
//
// Algorithms: flat (worlds of up to 4 ranks), dissemination (larger worlds).
//
// Terms: `heard` are the receives so far. n = world.

#include "schedule/barrier.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "schedule/builder.hpp"

namespace nexar::schedule::barrier {

// Flat: every rank signals rank 0; then rank 0 signals every rank.
//
//     world 4    1, 2, 3 -> 0, then 0 -> 1, 2, 3
//
// Two steps; rank 0 handles 2(n-1) messages. Chosen for worlds of up to 4 ranks.
Schedule flat(const Request& request) {
    Builder builder;
    if (request.rank != 0) {
        builder.send_signal(0);
        builder.receive_signal(0);
        return std::move(builder).build();
    }
    std::vector<Builder::StepId> heard;
    for (std::uint32_t peer = 1; peer < request.world; ++peer)
        heard.push_back(builder.receive_signal(peer));
    for (std::uint32_t peer = 1; peer < request.world; ++peer) {
        // The peer knows that it has entered itself: its signal does not need to be waited for.
        std::vector<Builder::StepId> others = heard;
        others.erase(others.begin() + (peer - 1));
        builder.after(builder.send_signal(peer), others);
    }
    return std::move(builder).build();
}

// Dissemination: in round k each rank signals the rank 2^k after it. The signal says that the
// sender and the 2^k - 1 ranks before it have entered.
//
//     world 4, round 0    0 -> 1 -> 2 -> 3 -> 0
//              round 1    0 -> 2, 1 -> 3, 2 -> 0, 3 -> 1
//
// ceil(log2(n)) steps, with one message in each direction. Chosen for worlds of 5 or more ranks.
//
// In the last round two signals may cover some ranks twice. A rank then waits only for the signals
// that tell its receiver something new: the entry of n - 2^k ranks.
Schedule dissemination(const Request& request) {
    Builder builder;
    std::vector<Builder::StepId> heard;
    for (std::uint32_t d = 1; d < request.world; d *= 2) {
        const std::uint32_t news = std::min(d, request.world - d);  // ranks, including itself
        const auto rounds = static_cast<std::size_t>(std::bit_width(news - 1));
        builder.after(builder.send_signal(around(request.rank, d, request.world)),
                      std::span(heard).first(rounds));
        heard.push_back(
            builder.receive_signal(around(request.rank, request.world - d, request.world)));
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::barrier
