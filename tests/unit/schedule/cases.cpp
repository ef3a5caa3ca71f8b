#include "unit/schedule/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <ostream>
#include <utility>

#include "schedule/check/checker.hpp"

namespace nexar::schedule {

std::ostream& operator<<(std::ostream& out, const Algorithm& algorithm) {
    return out << testing::full_name(algorithm);
}

}  // namespace nexar::schedule

namespace nexar::schedule::testing {

namespace {

using Counts = std::vector<std::uint64_t>;

std::uint64_t uneven_count(std::uint64_t most, Random& random) {
    return random.chance(0.3) ? 0 : random.below(most + 1);
}

/// counts[i][k]: elements that rank i sends to rank k.
std::vector<Counts> matrix(const Case& c) {
    Random random(c.uneven);
    std::vector<Counts> counts(c.world, Counts(c.world, c.count));
    if (c.uneven == 0) return counts;
    for (std::uint32_t i = 0; i < c.world; ++i)
        for (std::uint32_t k = 0; k < c.world; ++k) counts[i][k] = uneven_count(c.count, random);
    // In place, chunks that are exchanged must have the same size.
    for (std::uint32_t i = 0; c.in_place && i < c.world; ++i)
        for (std::uint32_t k = 0; k < i; ++k) counts[i][k] = counts[k][i];
    return counts;
}

void fill_all_to_all(const Case& c, std::vector<Request>& all) {
    const auto counts = matrix(c);
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
        Counts in(c.world);
        for (std::uint32_t i = 0; i < c.world; ++i) in[i] = counts[i][rank];
        all[rank].chunks = Chunks::of(counts[rank]);
        all[rank].receives = Chunks::of(in);
    }
}

void fill_uneven(const Case& c, std::vector<Request>& all) {
    Random random(c.uneven);
    Counts counts(c.world);
    for (std::uint64_t& count : counts) count = uneven_count(c.count, random);
    const bool root_knows = rooted(c.algorithm->operation);
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
        Counts known(c.world, 0);
        known[rank] = counts[rank];
        all[rank].chunks = Chunks::of(root_knows && rank != c.root ? known : counts);
    }
}

std::shared_ptr<const SpanningTree> random_tree(const Case& c) {
    Random random(c.world * 1000 + c.root);
    const std::uint32_t root = rooted(c.algorithm->operation) ? c.root : 0;
    std::vector<std::uint32_t> placed{root};
    std::vector<std::uint32_t> parents(c.world, root);
    for (std::uint32_t d = 1; d < c.world; ++d) {
        const std::uint32_t rank = around(root, d, c.world);
        parents[rank] = placed[random.below(placed.size())];
        placed.push_back(rank);
    }
    return std::make_shared<const SpanningTree>(parents);
}

RankOrder random_order(const Case& c) {
    std::vector<std::uint32_t> ranks(c.world);
    std::iota(ranks.begin(), ranks.end(), 0U);
    Random random(c.shuffled);
    for (std::uint32_t i = c.world; i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
    return RankOrder(std::move(ranks));
}

std::string hosts_text(const Case& c) {
    if (!c.algorithm->traits.two_level) return "";
    std::string text = " hosts";
    for (std::uint32_t rank = 0; rank < c.world; ++rank)
        text += fmt::format(" {}", c.links.host(rank));
    return text;
}

}  // namespace

std::string full_name(const Algorithm& algorithm) {
    return fmt::format("{}_{}", name(algorithm.operation), algorithm.name);
}

std::string to_text(const Case& c) {
    return fmt::format("{}: world {} root {} count {}{} segment {} window {} uneven {} shuffled {}",
                       full_name(*c.algorithm), c.world, c.root, c.count,
                       c.in_place ? " in place" : "", c.segment, c.window, c.uneven, c.shuffled) +
           hosts_text(c);
}

std::vector<Links> placements(std::uint32_t world, std::size_t most) {
    using Machines = std::vector<std::uint32_t>;
    std::vector<Links> all;
    const auto add = [&](const auto& host_of) {
        Machines machines(world);
        for (std::uint32_t rank = 0; rank < world; ++rank) machines[rank] = host_of(rank);
        const Links links(machines);
        if (all.size() < most && std::find(all.begin(), all.end(), links) == all.end())
            all.push_back(links);
    };
    Random random(world);
    add([&](std::uint32_t rank) { return rank * 2 / world; });  // two blocks
    add([](std::uint32_t rank) { return rank % 3; });           // in turn
    add([&](std::uint32_t rank) { return rank * rank * 4 / (world * world); });
    add([](std::uint32_t rank) { return rank == 1 ? 0U : 1 + rank % 2; });  // rank 1 is alone
    add([](std::uint32_t rank) { return rank / 2; });
    add([](std::uint32_t rank) { return rank / 4; });
    add([&](std::uint32_t) { return static_cast<std::uint32_t>(random.below(4)); });
    add([&](std::uint32_t) { return static_cast<std::uint32_t>(random.below(7)); });
    add([](std::uint32_t) { return 0U; });
    add([](std::uint32_t rank) { return rank; });
    return all;
}

std::vector<Links> placements(const Algorithm& algorithm, std::uint32_t world, std::size_t most) {
    if (!algorithm.traits.two_level) return {Links()};
    return placements(world, most);
}

std::uint64_t some_segment(const Case& c) {
    return std::max<std::uint64_t>(1, c.count / (std::uint64_t{3} * c.world));
}

std::vector<Request> requests(const Case& c) {
    Request common;
    common.operation = c.algorithm->operation;
    common.world = c.world;
    common.root = c.root;
    common.in_place = c.in_place;
    common.segment = c.segment;
    common.window = c.window;
    common.links = c.links;
    common.chunks = Chunks::even(c.count, c.world);
    if (!c.hops.none())
        follow(common, c.hops, *c.algorithm);
    else if (c.shuffled != 0)
        common.order = random_order(c);
    if (c.algorithm->traits.needs_tree && common.tree == nullptr) common.tree = random_tree(c);
    std::vector<Request> all(c.world, common);
    for (std::uint32_t rank = 0; rank < c.world; ++rank) all[rank].rank = rank;
    if (common.operation == Collective::all_to_all)
        fill_all_to_all(c, all);
    else if (c.uneven != 0)
        fill_uneven(c, all);
    return all;
}

std::vector<Schedule> schedules(const Case& c, const std::vector<Request>& requests) {
    std::vector<Schedule> all;
    all.reserve(requests.size());
    for (const Request& request : requests) all.push_back(c.algorithm->build(request));
    return all;
}

std::vector<Sent> sent(const std::vector<Schedule>& schedules) {
    std::vector<Sent> all;
    for (std::uint32_t rank = 0; rank < schedules.size(); ++rank) {
        for (const Step& step : schedules[rank].steps) {
            if (step.kind == Kind::send) all.push_back({rank, step.peer});
        }
    }
    return all;
}

std::string verdict(const Case& c) {
    const auto asked = requests(c);
    const auto built = schedules(c, asked);
    const Result<void> result = check(*c.algorithm, asked, built);
    return result ? std::string() : to_text(c) + ": " + result.error().cause();
}

}  // namespace nexar::schedule::testing
