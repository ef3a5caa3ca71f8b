// Leaders: collectives of ranks on several hosts, in two levels. The ranks of a host work through
// one of them, its leader, and only leaders exchange messages between hosts.
//
//     hosts 0 1 | 2 3, all_reduce    1 -> 0 and 3 -> 2, then 0 <-> 2, then 0 -> 1 and 2 -> 3
//     broadcast, root 1              1 -> 2, then 1 -> 0 and 2 -> 3
//     all_gather                     1 -> 0 and 3 -> 2, then 0 -01-> 2 and 2 -23-> 0, then as above
//     barrier                        the messages of the all_reduce, without elements
//
// A vector crosses the network once per host and round of the exchange between leaders, whatever
// the number of ranks per host is. The other ranks of a host wait for their leader, so these are
// for small vectors; shares.cpp is for large ones.
//
// Terms: `local` are the ranks of this rank's host, `leaders` one rank of each host: its first one,
// or the root. `held` is the fold of the host's vectors. h = hosts, m = ranks of a host, S =
// elements of the vector.

#include "schedule/leaders.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/hosts.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule::leaders {

// Fold to the leader along the tree, recursive doubling between leaders, then a binomial broadcast
// within each host: log2(h) steps between hosts, in each of which a leader sends S.
Schedule all_reduce(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Hosts hosts(request);
    const Group local = hosts.local();
    Builder builder;
    builder.among(local.ranks);
    if (local.size() > 1) FoldToRoot{local.size(), local.me, 0, in, out}.add_to(builder);
    if (local.me == 0) {
        const Group leaders = hosts.leaders(false);
        builder.among(leaders.ranks);
        doubling_all_reduce(builder, leaders.size(), leaders.me, local.size() > 1 ? out : in, out);
    }
    builder.among(local.ranks);
    binomial_broadcast(builder, local.size(), local.me, 0, out);
    return std::move(builder).build();
}

// Fold to the leader along the tree, then between leaders to the root. Both phases run in segments.
Schedule reduce(const Request& request) {
    const Slice in = input_of(request);
    const Hosts hosts(request);
    const Group local = hosts.local();
    const Group leaders = hosts.leaders(true);
    const std::uint32_t leader = leaders.ranks[hosts.host()];
    const auto position =
        static_cast<std::uint32_t>(std::ranges::find(local.ranks, leader) - local.ranks.begin());
    Builder builder(request.segment);
    std::optional<Slice> held;
    if (request.is_root()) {
        held = output_of(request);
    } else if (request.rank == leader && local.size() > 1) {
        held = builder.scratch(in.count);
    }
    builder.among(local.ranks);
    if (local.size() > 1) FoldToRoot{local.size(), local.me, position, in, held}.add_to(builder);
    if (request.rank != leader) return std::move(builder).build();
    builder.among(leaders.ranks);
    FoldToRoot{leaders.size(), leaders.me, hosts.root_host(),
               local.size() > 1 ? held.value_or(in) : in, held}
        .add_to(builder);
    return std::move(builder).build();
}

// A binomial tree between leaders, then one within each host. Both phases run in segments.
Schedule broadcast(const Request& request) {
    const Slice out = output_of(request);
    const Hosts hosts(request);
    const Group local = hosts.local_from_root();
    Builder builder(request.segment);
    if (local.me == 0) {
        const Group leaders = hosts.leaders(true);
        builder.among(leaders.ranks);
        binomial_broadcast(builder, leaders.size(), leaders.me, hosts.root_host(), out);
    }
    builder.among(local.ranks);
    binomial_broadcast(builder, local.size(), local.me, 0, out);
    return std::move(builder).build();
}

namespace {

/// The chunks of `count` hosts from `first` on, wrapping around, in the order of ranks.
std::vector<Span> chunks_of_hosts(const Hosts& hosts, std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto some = hosts.ranks(around(first, i, hosts.count()));
        ranks.insert(ranks.end(), some.begin(), some.end());
    }
    std::ranges::sort(ranks);
    return runs_of(ranks);
}

/// Sends the result down a binomial tree from the leader to the ranks of its host, each of which
/// has its own chunk already.
void spread_chunks(Builder& builder, const Group& local, const Chunks& chunks, const Slice& out) {
    const Binomial tree(local.size(), 0);
    const auto all_but = [&](std::uint32_t rank) {
        return std::array{chunk_range(out, chunks, 0, rank),
                          chunk_range(out, chunks, rank + 1, chunks.world())};
    };
    builder.among(local.ranks);
    if (local.me != 0)
        for (const Slice& slice : all_but(local.ranks[local.me]))
            builder.receive(Binomial::parent(local.me), slice);
    for (std::uint32_t d = tree.first_child(local.me); d > 0; d /= 2)
        for (const Slice& slice : all_but(local.ranks[local.me + d]))
            builder.send(local.me + d, slice);
}

}  // namespace

// The leader collects the chunks of its host; leaders exchange them as in Bruck's algorithm, a host
// in place of a rank; then the whole result goes down a binomial tree within each host. Chunks that
// are not adjacent travel as several messages: one per rank if neighbours are on different hosts.
Schedule all_gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const Hosts hosts(request);
    const Group local = hosts.local();
    Builder builder;
    builder.among(local.ranks);
    builder.copy(in, chunk(out, chunks, request.rank));
    if (local.me != 0) {
        builder.send(0, in);
        spread_chunks(builder, local, chunks, out);
        return std::move(builder).build();
    }
    for (std::uint32_t i = 1; i < local.size(); ++i)
        builder.receive(i, chunk(out, chunks, local.ranks[i]));
    builder.among(hosts.leaders(false).ranks);
    const std::uint32_t h = hosts.count();
    for (std::uint32_t have = 1; have < h; have *= 2) {
        const std::uint32_t count = std::min(have, h - have);
        const std::uint32_t to = around(hosts.host(), h - have, h);
        const std::uint32_t from = around(hosts.host(), have, h);
        for (const Span& run : chunks_of_hosts(hosts, hosts.host(), count))
            builder.send(to, have == 1 && local.size() == 1
                                 ? in
                                 : chunk_range(out, chunks, run.begin, run.end));
        for (const Span& run : chunks_of_hosts(hosts, from, count))
            builder.receive(from, chunk_range(out, chunks, run.begin, run.end));
    }
    spread_chunks(builder, local, chunks, out);
    return std::move(builder).build();
}

namespace {

/// The chunks of a host in the memory of its leader: those of consecutive ranks are one slice, as
/// they are at the root.
std::vector<Slice> chunks_at_leader(const Request& request, const Slice& packed,
                                    std::span<const std::uint32_t> ranks) {
    std::vector<Slice> slices;
    std::uint64_t offset = 0;
    for (const Span& run : runs_of(ranks)) {
        const std::uint64_t count =
            request.chunks.offset(run.end) - request.chunks.offset(run.begin);
        slices.push_back(part(packed, offset, count));
        offset += count;
    }
    return slices;
}

std::uint64_t elements_of(const Request& request, std::span<const std::uint32_t> ranks) {
    std::uint64_t all = 0;
    for (const std::uint32_t rank : ranks) all += request.chunks.count(rank);
    return all;
}

}  // namespace

// The leader collects the chunks of its host, packed, and sends them to the root.
Schedule gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const Hosts hosts(request);
    const std::uint32_t leader = hosts.leaders(true).ranks[hosts.host()];
    const auto ranks = hosts.ranks(hosts.host());
    Builder builder;
    if (request.rank != leader) {
        builder.send(leader, in);
        return std::move(builder).build();
    }
    if (request.is_root()) {
        builder.copy(in, chunk(out, chunks, request.rank));
        for (const std::uint32_t rank : ranks)
            if (rank != request.rank) builder.receive(rank, chunk(out, chunks, rank));
        for (std::uint32_t d = 1; d < hosts.count(); ++d) {
            const std::uint32_t host = around(hosts.host(), d, hosts.count());
            for (const Span& run : runs_of(hosts.ranks(host)))
                builder.receive(hosts.ranks(host)[0], chunk_range(out, chunks, run.begin, run.end));
        }
        return std::move(builder).build();
    }
    Slice packed = in;
    if (ranks.size() > 1) {
        packed = builder.scratch(elements_of(request, ranks));
        std::uint64_t offset = 0;
        for (const std::uint32_t rank : ranks) {
            const Slice place = part(packed, offset, chunks.count(rank));
            if (rank == request.rank)
                builder.copy(in, place);
            else
                builder.receive(rank, place);
            offset += place.count;
        }
    }
    for (const Slice& slice : chunks_at_leader(request, packed, ranks))
        builder.send(request.root, slice);
    return std::move(builder).build();
}

// The root sends the chunks of each host to its leader, packed, which hands them out.
Schedule scatter(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = result_of(request);
    const Chunks& chunks = request.chunks;
    const Hosts hosts(request);
    const std::uint32_t leader = hosts.leaders(true).ranks[hosts.host()];
    const auto ranks = hosts.ranks(hosts.host());
    Builder builder;
    if (request.rank != leader) {
        builder.receive(leader, out);
        return std::move(builder).build();
    }
    if (request.is_root()) {
        for (std::uint32_t d = 1; d < hosts.count(); ++d) {
            const std::uint32_t host = around(hosts.host(), d, hosts.count());
            for (const Span& run : runs_of(hosts.ranks(host)))
                builder.send(hosts.ranks(host)[0], chunk_range(in, chunks, run.begin, run.end));
        }
        for (const std::uint32_t rank : ranks)
            if (rank != request.rank) builder.send(rank, chunk(in, chunks, rank));
        builder.copy(chunk(in, chunks, request.rank), out);
        return std::move(builder).build();
    }
    if (ranks.size() == 1) {
        builder.receive(request.root, out);
        return std::move(builder).build();
    }
    const Slice packed = builder.scratch(elements_of(request, ranks));
    for (const Slice& slice : chunks_at_leader(request, packed, ranks))
        builder.receive(request.root, slice);
    std::uint64_t offset = 0;
    for (const std::uint32_t rank : ranks) {
        const Slice place = part(packed, offset, chunks.count(rank));
        if (rank == request.rank)
            builder.copy(place, out);
        else
            builder.send(rank, place);
        offset += place.count;
    }
    return std::move(builder).build();
}

// The ranks of a host signal their leader, leaders run a dissemination (barrier.cpp), and signal
// the ranks of their hosts. The entry of a leader stands for that of all ranks of its host.
Schedule barrier(const Request& request) {
    const Hosts hosts(request);
    const Group local = hosts.local();
    Builder builder;
    builder.among(local.ranks);
    if (local.me != 0) {
        builder.send_signal(0);
        builder.receive_signal(0);
        return std::move(builder).build();
    }
    std::vector<Builder::StepId> entered;  // ranks of this host
    for (std::uint32_t i = 1; i < local.size(); ++i) entered.push_back(builder.receive_signal(i));
    std::vector<Builder::StepId> heard;
    builder.among(hosts.leaders(false).ranks);
    const std::uint32_t h = hosts.count();
    for (std::uint32_t d = 1; d < h; d *= 2) {
        const std::uint32_t news = std::min(d, h - d);  // hosts, including this one
        std::vector<Builder::StepId> before = entered;
        before.insert(before.end(), heard.begin(), heard.begin() + std::bit_width(news - 1));
        builder.after(builder.send_signal(around(hosts.host(), d, h)), before);
        heard.push_back(builder.receive_signal(around(hosts.host(), h - d, h)));
    }
    builder.among(local.ranks);
    for (std::uint32_t i = 1; i < local.size(); ++i) {
        // The rank itself knows that it has entered.
        std::vector<Builder::StepId> others = entered;
        others.erase(others.begin() + (i - 1));
        others.insert(others.end(), heard.begin(), heard.end());
        builder.after(builder.send_signal(i), others);
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::leaders
