// Shares, gather and scatter: the ranks of the host of the root receive from other hosts, or send
// to them, at the same time, and exchange with the root within the host.
//
//     hosts 0 1 | 2 3, gather, root 0    2 -> 0 and 3 -> 1, then 1 -13-> 0
//     scatter                            0 -13-> 1, then 0 -> 2 and 1 -> 3
//
// A rank of another host exchanges with the rank at its own position on the host of the root, where
// the root is first; positions wrap around if that host has fewer ranks. Each chunk crosses the
// network once, and at most twice memory. Chosen for large chunks, where the root alone cannot use
// the whole network of its host.
//
// Terms: `local` are the ranks of the host of the root, a *partner* is one of them as others see
// it.

#include <vector>

#include "schedule/builder.hpp"
#include "schedule/hosts.hpp"
#include "schedule/shares.hpp"

namespace nexar::schedule::shares {

namespace {

/// The ranks of other hosts whose partner is at this position of the host of the root, in order.
std::vector<std::uint32_t> ranks_of_partner(const Hosts& hosts, std::uint32_t position,
                                            std::uint32_t partners) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t host = 0; host < hosts.count(); ++host) {
        if (host == hosts.root_host()) continue;
        const auto ranks = hosts.ranks(host);
        for (std::uint32_t i = position; i < ranks.size(); i += partners) all.push_back(ranks[i]);
    }
    return all;
}

}  // namespace

Schedule gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const Hosts hosts(request);
    const Group local = hosts.from_root();
    Builder builder;
    if (hosts.host() != hosts.root_host()) {
        builder.send(local.ranks[hosts.local().me % local.size()], in);
        return std::move(builder).build();
    }
    const auto far = ranks_of_partner(hosts, local.me, local.size());
    if (!request.is_root()) {
        builder.send(request.root, in);
        for (const std::uint32_t rank : far) {
            const Slice passed = builder.scratch(chunks.count(rank));
            builder.receive(rank, passed);
            builder.send(request.root, passed);
        }
        return std::move(builder).build();
    }
    builder.copy(in, chunk(out, chunks, request.rank));
    for (const std::uint32_t rank : far) builder.receive(rank, chunk(out, chunks, rank));
    for (std::uint32_t i = 1; i < local.size(); ++i) {
        builder.receive(local.ranks[i], chunk(out, chunks, local.ranks[i]));
        for (const std::uint32_t rank : ranks_of_partner(hosts, i, local.size()))
            builder.receive(local.ranks[i], chunk(out, chunks, rank));
    }
    return std::move(builder).build();
}

Schedule scatter(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = result_of(request);
    const Chunks& chunks = request.chunks;
    const Hosts hosts(request);
    const Group local = hosts.from_root();
    Builder builder;
    if (hosts.host() != hosts.root_host()) {
        builder.receive(local.ranks[hosts.local().me % local.size()], out);
        return std::move(builder).build();
    }
    const auto far = ranks_of_partner(hosts, local.me, local.size());
    if (!request.is_root()) {
        for (const std::uint32_t rank : far) {
            const Slice passed = builder.scratch(chunks.count(rank));
            builder.receive(request.root, passed);
            builder.send(rank, passed);
        }
        builder.receive(request.root, out);
        return std::move(builder).build();
    }
    for (std::uint32_t i = 1; i < local.size(); ++i)
        for (const std::uint32_t rank : ranks_of_partner(hosts, i, local.size()))
            builder.send(local.ranks[i], chunk(in, chunks, rank));
    for (const std::uint32_t rank : far) builder.send(rank, chunk(in, chunks, rank));
    for (std::uint32_t i = 1; i < local.size(); ++i)
        builder.send(local.ranks[i], chunk(in, chunks, local.ranks[i]));
    builder.copy(chunk(in, chunks, request.rank), out);
    return std::move(builder).build();
}

}  // namespace nexar::schedule::shares
