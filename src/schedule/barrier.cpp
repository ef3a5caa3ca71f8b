#include "schedule/barrier.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "schedule/builder.hpp"

namespace nexar::schedule::barrier {

// Flat: everybody tells rank 0, which tells everybody.
//
//     world 4    1, 2, 3 -> 0, then 0 -> 1, 2, 3
//
// Two steps; rank 0 has 2(n-1) messages. For worlds of up to 4.
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
        // A rank knows of itself that it came.
        std::vector<Builder::StepId> others = heard;
        others.erase(others.begin() + (peer - 1));
        builder.after(builder.send_signal(peer), others);
    }
    return std::move(builder).build();
}

// Dissemination: in round k everybody tells the rank 2^k after it all that it heard, which is that
// the 2^k ranks up to itself have come.
//
//     world 4, round 0    0 -> 1 -> 2 -> 3 -> 0
//              round 1    0 -> 2, 1 -> 3, 2 -> 0, 3 -> 1
//
// log2(n) steps, rounded up, with one message each way. For all larger worlds.
//
// In the last round the ranks that two messages speak of may overlap; a rank then waits only for
// what the other does not know yet, which is the news of n - 2^k ranks.
Schedule dissemination(const Request& request) {
    Builder builder;
    std::vector<Builder::StepId> heard;
    for (std::uint32_t d = 1; d < request.world; d *= 2) {
        const std::uint32_t news = std::min(d, request.world - d);  // ranks, itself included
        const auto rounds = static_cast<std::size_t>(std::bit_width(news - 1));
        builder.after(builder.send_signal(around(request.rank, d, request.world)),
                      std::span(heard).first(rounds));
        heard.push_back(
            builder.receive_signal(around(request.rank, request.world - d, request.world)));
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::barrier
