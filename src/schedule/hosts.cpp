#include "schedule/hosts.hpp"

#include <algorithm>

namespace nexar::schedule {

namespace {

std::uint32_t position_of(std::span<const std::uint32_t> ranks, std::uint32_t rank) {
    return static_cast<std::uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

}  // namespace

Hosts::Hosts(const Request& request)
    : rank_(request.rank),
      root_(request.root),
      host_(request.links.host(request.rank)),
      root_host_(request.links.host(request.root)),
      owners_(request.world) {
    for (std::uint32_t rank = 0; rank < request.world; ++rank) {
        const std::uint32_t host = request.links.host(rank);
        if (host >= hosts_.size()) hosts_.resize(host + 1);
        hosts_[host].push_back(rank);
    }
    for (const auto& ranks : hosts_)
        owners_ = std::min(owners_, static_cast<std::uint32_t>(ranks.size()));
}

Group Hosts::local() const {
    return {hosts_[host_], position_of(hosts_[host_], rank_)};
}

Group Hosts::local_from_root() const {
    return host_ == root_host_ ? from_root() : local();
}

Group Hosts::from_root() const {
    Group group{hosts_[root_host_], 0};
    std::ranges::rotate(group.ranks, std::ranges::find(group.ranks, root_));
    group.me = position_of(group.ranks, rank_);
    return group;
}

Group Hosts::column(std::uint32_t position) const {
    Group group{{}, host_};
    for (const auto& ranks : hosts_) group.ranks.push_back(ranks[position]);
    return group;
}

Group Hosts::column_from_root(std::uint32_t position) const {
    Group group = column(position);
    const auto& ranks = hosts_[root_host_];
    const auto size = static_cast<std::uint32_t>(ranks.size());
    group.ranks[root_host_] = ranks[around(position_of(ranks, root_), position, size)];
    return group;
}

Group Hosts::leaders(bool rooted) const {
    Group group = column(0);
    if (rooted) group.ranks[root_host_] = root_;
    return group;
}

std::vector<std::uint32_t> Hosts::owned(std::uint32_t host, std::uint32_t position) const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = position; i < hosts_[host].size(); i += owners_)
        all.push_back(hosts_[host][i]);
    return all;
}

std::vector<std::uint32_t> Hosts::owned(std::uint32_t position) const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t host = 0; host < count(); ++host) {
        const auto some = owned(host, position);
        all.insert(all.end(), some.begin(), some.end());
    }
    std::ranges::sort(all);
    return all;
}

std::vector<Span> runs_of(std::span<const std::uint32_t> ranks) {
    std::vector<Span> runs;
    for (const std::uint32_t rank : ranks) {
        if (!runs.empty() && runs.back().end == rank)
            ++runs.back().end;
        else
            runs.push_back({rank, rank + 1});
    }
    return runs;
}

}  // namespace nexar::schedule
