// Shares: collectives of ranks on several hosts, in two levels. The vector is divided into k
// shares. On every host the first k ranks own one share each: they collect it within the host and
// exchange it with the owners of the same share on other hosts, all shares at the same time.
//
//     hosts 0 1 | 2 3, all_reduce    share 1 of 0 -> 1, share 0 of 1 -> 0, 2 and 3 the same; then
//                                    0 <-> 2 share 0 and 1 <-> 3 share 1; then 0 <-> 1 and 2 <-> 3
//
// k is the number of ranks of the smallest host, so every host has all owners, whatever the sizes
// of hosts are; further ranks of a larger host contribute to owners and get the result from them.
// Each phase is a direct exchange (direct.hpp). An all_reduce has four of them, two within hosts
// and two between: an owner sends 2S(h-1)/(hk) to other hosts and at most 2S within its own. Chosen
// for large vectors where one rank alone cannot use the whole network of its host.
//
// Terms: `local` are the ranks of this rank's host, `column` the owners of one share, one of each
// host; a block is the part of a share that one of them folds. h = hosts, S = elements of the
// vector.

#include "schedule/shares.hpp"

#include <algorithm>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/direct.hpp"
#include "schedule/hosts.hpp"
#include "schedule/tree_fold.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule::shares {

Schedule all_reduce(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Hosts hosts(request);
    const Group local = hosts.local();
    const bool alone = local.size() == 1;
    const Chunks shares = Chunks::even(in.count, hosts.owners());
    const bool owner = local.me < hosts.owners();
    const Slice share = owner ? chunk(out, shares, local.me) : Slice{};
    Builder builder;
    if (!alone) direct_reduce_scatter(builder, local, shares, in, share);
    if (owner) {
        const Group column = hosts.column(local.me);
        const Chunks blocks = Chunks::even(share.count, column.size());
        const Slice held = alone ? in : share;  // alone there is only one share
        direct_reduce_scatter(builder, column, blocks, held, chunk(share, blocks, column.me));
        direct_all_gather(builder, column, blocks, share);
    }
    if (!alone) direct_all_gather(builder, local, shares, out);
    return std::move(builder).build();
}

namespace {

/// The owners of a share fold what they `hold`; the one on the host of the root gets the result in
/// `share`, which is what the others hold.
void fold_to_host_of_root(Builder& builder, const Hosts& hosts, const Group& column,
                          const Slice& held, const Slice& share) {
    const bool here = hosts.host() == hosts.root_host();
    builder.among(column.ranks);
    if (column.size() <= 2) {
        FoldToRoot fold{column.size(), column.me, hosts.root_host(), held, {}};
        if (here) fold.into = share;
        fold.add_to(builder);
        return;
    }
    const Chunks blocks = Chunks::even(share.count, column.size());
    Slice block = chunk(share, blocks, column.me);
    // The input must not change.
    if (block.space == Space::input) block = builder.scratch(block.count);
    direct_reduce_scatter(builder, column, blocks, held, block);
    if (!here) builder.send(hosts.root_host(), block);
    for (std::uint32_t d = 1; here && d < column.size(); ++d) {
        const std::uint32_t peer = around(column.me, d, column.size());
        builder.receive(peer, chunk(share, blocks, peer));
    }
}

}  // namespace

// Folds every share as an all_reduce does; then the owners send their blocks to the owner on the
// host of the root, and the owners there send their shares to the root. With two hosts the owners
// on the other one send their shares at once.
Schedule reduce(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Hosts hosts(request);
    const Group local = hosts.local();
    const bool alone = local.size() == 1;
    const bool here = hosts.host() == hosts.root_host();
    const Chunks shares = Chunks::even(in.count, hosts.owners());
    Builder builder;
    Slice share;
    if (local.me < hosts.owners()) {
        if (request.is_root())
            share = chunk(out, shares, local.me);
        else
            share = alone ? in : builder.scratch(shares.count(local.me));
    }
    if (!alone) direct_reduce_scatter(builder, local, shares, in, share);
    if (local.me < hosts.owners()) {
        fold_to_host_of_root(builder, hosts, hosts.column(local.me), alone ? in : share, share);
    }
    if (!here) return std::move(builder).build();
    builder.among({});
    if (request.is_root()) {
        for (std::uint32_t i = 0; i < hosts.owners(); ++i)
            if (i != local.me) builder.receive(local.ranks[i], chunk(out, shares, i));
    } else {
        builder.send(request.root, share);
    }
    return std::move(builder).build();
}

// The root is the first owner of its host, and gives the other owners their shares. The owner of a
// share on the host of the root sends one block of it to each other host; then all owners of the
// share exchange their blocks, and the owners of each host their shares. With two hosts a share
// travels as a whole.
Schedule broadcast(const Request& request) {
    const Slice out = output_of(request);
    const Hosts hosts(request);
    const Group local = hosts.local_from_root();
    const bool here = hosts.host() == hosts.root_host();
    const Chunks shares = Chunks::even(out.count, hosts.owners());
    Builder builder;
    builder.among(local.ranks);
    for (std::uint32_t i = 1; request.is_root() && i < hosts.owners(); ++i)
        builder.send(i, chunk(out, shares, i));
    if (local.me < hosts.owners()) {
        const Slice share = chunk(out, shares, local.me);
        if (here && !request.is_root()) builder.receive(0, share);
        const Group column = hosts.column_from_root(local.me);
        const Chunks blocks = Chunks::even(share.count, column.size());
        builder.among(column.ranks);
        if (column.size() == 2) {
            if (here) builder.send(1 - column.me, share);
            if (!here) builder.receive(hosts.root_host(), share);
        } else {
            for (std::uint32_t d = 1; here && d < column.size(); ++d) {
                const std::uint32_t peer = around(column.me, d, column.size());
                builder.send(peer, chunk(share, blocks, peer));
            }
            if (!here) builder.receive(hosts.root_host(), chunk(share, blocks, column.me));
            direct_all_gather(builder, column, blocks, share, hosts.root_host());
        }
    }
    direct_all_gather(builder, local, shares, out, here ? 0 : Builder::kNone);
    return std::move(builder).build();
}

namespace {

/// The position of the owner that acts for this rank.
std::uint32_t owner_of(const Group& local, const Hosts& hosts) {
    return local.me % hosts.owners();
}

std::vector<std::uint32_t> without(std::vector<std::uint32_t> ranks, std::uint32_t rank) {
    std::erase(ranks, rank);
    return ranks;
}

}  // namespace

// A share is the chunks of the ranks at certain positions of all hosts (Hosts::owned()). Owners
// collect the chunks of their hosts, exchange them between hosts, and then within their host.
// Chunks that are not adjacent travel as several messages.
Schedule all_gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const Hosts hosts(request);
    const Group local = hosts.local();
    const std::uint32_t owner = owner_of(local, hosts);
    const auto range = [&](const Span& run) {
        return chunk_range(out, chunks, run.begin, run.end);
    };
    Builder builder;
    builder.among(local.ranks);
    builder.copy(in, chunk(out, chunks, request.rank));
    if (owner != local.me) builder.send(owner, in);
    if (owner == local.me) {
        for (const std::uint32_t rank : hosts.owned(hosts.host(), owner)) {
            if (rank == request.rank) continue;
            builder.among({});
            builder.receive(rank, chunk(out, chunks, rank));
        }
        const Group column = hosts.column(owner);
        const auto mine = hosts.owned(hosts.host(), owner);
        builder.among(column.ranks);
        for (std::uint32_t d = 1; d < column.size(); ++d)
            for (const Span& run : runs_of(mine))
                builder.send(around(column.me, d, column.size()),
                             mine.size() == 1 ? in : range(run));
        for (std::uint32_t d = 1; d < column.size(); ++d) {
            const std::uint32_t host = around(column.me, column.size() - d, column.size());
            for (const Span& run : runs_of(hosts.owned(host, owner)))
                builder.receive(host, range(run));
        }
        builder.among(local.ranks);
        for (std::uint32_t d = 1; d < local.size(); ++d) {
            const std::uint32_t peer = around(local.me, d, local.size());
            for (const Span& run : runs_of(without(hosts.owned(owner), local.ranks[peer])))
                builder.send(peer, range(run));
        }
    }
    builder.among(local.ranks);
    for (std::uint32_t d = 1; d < local.size(); ++d) {
        const std::uint32_t peer = around(local.me, local.size() - d, local.size());
        if (peer >= hosts.owners()) continue;
        for (const Span& run : runs_of(without(hosts.owned(peer), request.rank)))
            builder.receive(peer, range(run));
    }
    return std::move(builder).build();
}

namespace {

/// The runs of a share, those of the hosts after this one first: owners then send to the next host
/// first, each to another one.
std::vector<Span> runs_from_next_host(const Hosts& hosts, std::uint32_t owner) {
    auto runs = runs_of(hosts.owned(owner));
    const std::uint32_t own = hosts.owned(hosts.host(), owner).front();
    const auto next = std::ranges::find_if(runs, [&](const Span& run) { return run.begin > own; });
    std::ranges::rotate(runs, next);
    return runs;
}

/// Where an owner keeps the chunks of its share while it folds them, one slice per run.
std::vector<Slice> places_of(Builder& builder, const Request& request, const Slice& in,
                             std::span<const Span> runs, bool in_input) {
    std::vector<Slice> places;
    for (const Span& run : runs) {
        const Slice slice = chunk_range(in, request.chunks, run.begin, run.end);
        places.push_back(in_input ? slice : builder.scratch(slice.count));
    }
    return places;
}

}  // namespace

// A share is the chunks of the ranks at certain positions of all hosts (Hosts::owned()). Owners
// fold their share within the host, then the chunks of their own host over all hosts, and hand out
// those of other ranks. Chunks that are not adjacent travel as several messages.
Schedule reduce_scatter(const Request& request) {
    const Slice in = input_of(request);
    const Slice result = result_of(request);
    const Chunks& chunks = request.chunks;
    const Hosts hosts(request);
    const Group local = hosts.local();
    const bool alone = local.size() == 1;
    const std::uint32_t owner = owner_of(local, hosts);
    Builder builder;
    builder.among(local.ranks);
    for (std::uint32_t d = 1; d < local.size(); ++d) {
        const std::uint32_t peer = around(local.me, d, local.size());
        if (peer >= hosts.owners()) continue;
        for (const Span& run : runs_from_next_host(hosts, peer))
            builder.send(peer, chunk_range(in, chunks, run.begin, run.end));
    }
    if (owner != local.me) {
        builder.receive(owner, result);
        return std::move(builder).build();
    }
    const auto runs = runs_from_next_host(hosts, owner);
    // In place the rest of the vector may be overwritten.
    const auto held = places_of(builder, request, in, runs, alone || in_place_here(request));
    for (std::size_t i = 0; !alone && i < runs.size(); ++i)
        TreeFold(builder, local.size(), local.me,
                 chunk_range(in, chunks, runs[i].begin, runs[i].end), held[i])
            .add();
    const auto place = [&](const Span& run) {
        std::size_t i = 0;
        while (run.begin < runs[i].begin || run.begin >= runs[i].end) ++i;
        return part(held[i], chunks.offset(run.begin) - chunks.offset(runs[i].begin),
                    chunks.offset(run.end) - chunks.offset(run.begin));
    };
    const Group column = hosts.column(owner);
    builder.among(column.ranks);
    for (std::uint32_t d = 1; d < column.size(); ++d) {
        const std::uint32_t host = around(column.me, d, column.size());
        for (const Span& run : runs_of(hosts.owned(host, owner))) builder.send(host, place(run));
    }
    const auto mine = hosts.owned(hosts.host(), owner);
    for (const Span& run : runs_of(mine)) {
        // A rank that is alone on its host owns one chunk of it, so its input does not change.
        const Slice into = mine.size() == 1 ? result : place(run);
        TreeFold(builder, column.size(), column.me, place(run), into).add();
    }
    if (mine.size() == 1) return std::move(builder).build();
    builder.among({});
    for (const std::uint32_t rank : mine) {
        const Slice folded = place({rank, rank + 1});
        if (rank == request.rank)
            builder.copy(folded, result);
        else
            builder.send(rank, folded);
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::shares
