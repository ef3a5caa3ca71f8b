#include "unit/schedule/expected.hpp"

namespace nexar::schedule::testing {

namespace {

std::uint64_t folded(Operator op, std::uint32_t ranks, std::uint64_t index) {
    std::uint64_t value = element(0, index);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) value = op(value, element(rank, index));
    return value;
}

}  // namespace

Operator operator_for(const Case& c) {
    return traits_for(*c.algorithm, c.links.levels(c.world)).keeps_order ? compose : sum;
}

std::vector<std::uint64_t> expected(const Case& c, const std::vector<Request>& asked,
                                    std::uint32_t rank) {
    const Operator op = operator_for(c);
    const Request& own = asked[rank];
    const std::uint64_t count = result_of(own).count;
    std::vector<std::uint64_t> all;
    for (std::uint32_t from = 0; from < c.world; ++from) {
        const bool gathers = own.operation == Collective::all_gather ||
                             (own.operation == Collective::gather && rank == c.root);
        for (std::uint64_t i = 0; gathers && i < own.chunks.count(from); ++i)
            all.push_back(element(from, i));
        for (std::uint64_t i = 0;
             own.operation == Collective::all_to_all && i < own.receives.count(from); ++i)
            all.push_back(element(from, asked[from].chunks.offset(rank) + i));
    }
    for (std::uint64_t i = 0; all.size() < count; ++i) {
        switch (own.operation) {
            case Collective::broadcast:
                all.push_back(element(c.root, i));
                break;
            case Collective::scatter:
                all.push_back(element(c.root, asked[c.root].chunks.offset(rank) + i));
                break;
            case Collective::reduce_scatter:
                all.push_back(folded(op, c.world, own.chunks.offset(rank) + i));
                break;
            case Collective::scan:
                all.push_back(folded(op, rank + 1, i));
                break;
            case Collective::exclusive_scan:
                all.push_back(folded(op, rank, i));
                break;
            default:
                all.push_back(folded(op, c.world, i));
                break;
        }
    }
    return all;
}

}  // namespace nexar::schedule::testing
