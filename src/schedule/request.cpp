#include "schedule/request.hpp"

#include <array>

namespace nexar::schedule {

std::string_view name(Collective operation) noexcept {
    constexpr std::array<std::string_view, 11> kNames{
        "all_reduce",     "reduce",     "broadcast", "all_gather",     "gather", "scatter",
        "reduce_scatter", "all_to_all", "scan",      "exclusive_scan", "barrier"};
    const auto i = static_cast<std::size_t>(operation);
    return i < kNames.size() ? kNames[i] : "unknown";
}

bool reduces(Collective operation) noexcept {
    switch (operation) {
        case Collective::all_reduce:
        case Collective::reduce:
        case Collective::reduce_scatter:
        case Collective::scan:
        case Collective::exclusive_scan:
            return true;
        default:
            return false;
    }
}

bool rooted(Collective operation) noexcept {
    switch (operation) {
        case Collective::reduce:
        case Collective::broadcast:
        case Collective::gather:
        case Collective::scatter:
            return true;
        default:
            return false;
    }
}

bool in_place_here(const Request& request) noexcept {
    if (request.operation == Collective::broadcast) return request.is_root();
    return request.in_place && (!rooted(request.operation) || request.is_root());
}

Slice input_of(const Request& request) {
    const Chunks& chunks = request.chunks;
    const Space space = in_place_here(request) ? Space::output : Space::input;
    switch (request.operation) {
        case Collective::all_gather:
        case Collective::gather:
            return {space, space == Space::output ? chunks.offset(request.rank) : 0,
                    chunks.count(request.rank)};
        case Collective::broadcast:
        case Collective::scatter:
            return {space, 0, request.is_root() ? chunks.total() : 0};
        case Collective::barrier:
            return {space, 0, 0};
        default:
            return {space, 0, chunks.total()};
    }
}

Slice output_of(const Request& request) {
    const Chunks& chunks = request.chunks;
    switch (request.operation) {
        case Collective::reduce:
        case Collective::gather:
            return {Space::output, 0, request.is_root() ? chunks.total() : 0};
        case Collective::scatter:
        case Collective::reduce_scatter:
            return {Space::output, 0,
                    in_place_here(request) ? chunks.total() : chunks.count(request.rank)};
        case Collective::all_to_all:
            return {Space::output, 0, request.receives.total()};
        case Collective::barrier:
            return {Space::output, 0, 0};
        default:
            return {Space::output, 0, chunks.total()};
    }
}

Slice result_of(const Request& request) {
    const Slice output = output_of(request);
    const bool own_chunk =
        request.operation == Collective::scatter || request.operation == Collective::reduce_scatter;
    if (!own_chunk || !in_place_here(request)) return output;
    return part(output, request.chunks.offset(request.rank), request.chunks.count(request.rank));
}

}  // namespace nexar::schedule
