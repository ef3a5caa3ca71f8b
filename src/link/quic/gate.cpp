#include "link/quic/gate.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/random.hpp"

namespace nexar::quic {

namespace {

/// Among entries in order of age, finds the oldest one of the largest group; also returns that
/// group's size.
template <class Entry, class Key>
std::pair<const Entry*, std::size_t> oldest_of_largest(std::span<const Entry* const> entries,
                                                       Key key) {
    std::map<std::uint64_t, std::pair<const Entry*, std::size_t>> groups;
    for (const Entry* entry : entries) {
        auto& group = groups[key(*entry)];
        if (group.second++ == 0) group.first = entry;
    }
    std::pair<const Entry*, std::size_t> largest{};
    for (const auto& [name, group] : groups) {
        const bool older = group.second == largest.second && group.first < largest.first;
        if (group.second > largest.second || older) largest = group;
    }
    return largest;
}

}  // namespace

Gate::Gate(const GateLimits& limits, std::uint64_t seed)
    : limits_(limits),
      seed_(seed),
      unproven_(limits.new_per_second_before_retry, limits.new_per_second_before_retry),
      replies_(limits.replies_per_second, limits.replies_per_second / 100),
      of_members_(limits.members_per_second, limits.members_per_second),
      all_(limits.per_second, limits.burst),
      sources_(kBuckets, TokenBucket(limits.per_source_per_second, limits.per_source_burst)),
      addresses_(kBuckets, TokenBucket(limits.per_address_per_second, limits.per_address_burst)),
      networks_(kBuckets, TokenBucket(limits.per_network_per_second, limits.per_network_burst)) {}

std::uint64_t Gate::network_of(const Address& address) const noexcept {
    const auto network = address.prefix();
    std::uint64_t number = 0;
    std::memcpy(&number, network.data(), sizeof number);
    return SplitMix64(number ^ seed_).next();
}

std::uint64_t Gate::address_of(const Address& address) const noexcept {
    std::array<std::uint64_t, 2> words{};
    if (address.is_v6()) {
        std::memcpy(words.data(), &address.v6().sin6_addr, sizeof words);
    } else {
        std::memcpy(words.data(), &address.v4().sin_addr, sizeof(in_addr));
        words[1] = ~std::uint64_t{0};  // so that it differs from every IPv6 address
    }
    return SplitMix64(SplitMix64(words[0] ^ seed_).next() ^ words[1]).next();
}

std::uint64_t Gate::source_of(const Address& address) const noexcept {
    return SplitMix64(address_of(address) ^ address.port()).next();
}

Gate::Verdict Gate::judge(TimePoint now, const Address& from, bool proven) {
    if (!proven) {
        const bool busy = pressed() || !unproven_.take(now);
        return busy ? Verdict::retry : Verdict::accept;
    }
    if (is_member(from) && of_members_.take(now)) return Verdict::accept;
    TokenBucket& source = sources_[source_of(from) % kBuckets];
    TokenBucket& address = addresses_[address_of(from) % kBuckets];
    TokenBucket& network = networks_[network_of(from) % kBuckets];
    const bool within = !pressed() || (source.has(now) && address.has(now));
    // All or nothing: a packet that one bucket rejects must not use up the others.
    if (!within || !network.has(now) || !all_.has(now)) return Verdict::drop;
    for (TokenBucket* bucket : {&source, &address, &network, &all_}) bucket->take(now);
    return Verdict::accept;
}

void Gate::set_members(std::span<const Address> members) {
    members_.clear();
    for (const Address& member : members) members_.push_back(source_of(member.unmapped()));
    std::ranges::sort(members_);
}

bool Gate::is_member(const Address& address) const noexcept {
    return !members_.empty() && std::ranges::binary_search(members_, source_of(address));
}

std::size_t Gate::strangers_allowed() const noexcept {
    return limits_.half_open - limits_.half_open / 4;
}

bool Gate::full(const Address& from) const noexcept {
    return half_open() >= limits_.half_open ||
           (!is_member(from) && strangers_ >= strangers_allowed());
}

/// The stranger that must make room first: the oldest handshake of the busiest port at an address
/// that holds too many slots; if there is none, of a network that does; otherwise the oldest of
/// all. An honest client completes its handshake before it becomes the oldest, even at the address
/// of a flood.
const Gate::HalfOpen* Gate::victim() const {
    std::vector<const HalfOpen*> strangers;
    strangers.reserve(strangers_);
    for (const HalfOpen& one : half_open_) {
        if (!one.member) strangers.push_back(&one);
    }
    if (strangers.empty()) return nullptr;
    const auto keep = [&](auto member, std::uint64_t value) {
        std::erase_if(strangers, [&](const HalfOpen* one) { return one->*member != value; });
    };
    using Group = std::pair<const HalfOpen*, std::size_t>;
    const auto largest = [&](auto member) -> Group {
        return oldest_of_largest<HalfOpen>(strangers,
                                           [&](const HalfOpen& one) { return one.*member; });
    };
    const Group by_address = largest(&HalfOpen::address);
    if (by_address.second > limits_.half_open_per_address) {
        keep(&HalfOpen::address, by_address.first->address);
        return largest(&HalfOpen::source).first;
    }
    const Group by_network = largest(&HalfOpen::network);
    if (by_network.second > limits_.half_open_per_network) {
        keep(&HalfOpen::network, by_network.first->network);
        return largest(&HalfOpen::address).first;
    }
    return strangers.front();
}

std::optional<port::LinkId> Gate::in_the_way(TimePoint now, const Address& from) const {
    if (half_open() >= limits_.half_open / 2) {
        const auto oldest = std::ranges::find(half_open_, false, &HalfOpen::member);
        if (oldest != half_open_.end() && now - oldest->since > limits_.short_life) {
            return oldest->link;
        }
    }
    if (!full(from)) return std::nullopt;
    const HalfOpen* one = victim();
    return one == nullptr ? std::nullopt : std::optional(one->link);
}

void Gate::opened(TimePoint now, port::LinkId link, const Address& from) {
    const bool member = is_member(from);
    if (!member) ++strangers_;
    half_open_.push_back({.link = link,
                          .since = now,
                          .source = source_of(from),
                          .address = address_of(from),
                          .network = network_of(from),
                          .member = member});
}

void Gate::closed(port::LinkId link) {
    const auto found = std::ranges::find(half_open_, link, &HalfOpen::link);
    if (found == half_open_.end()) return;
    if (!found->member) --strangers_;
    half_open_.erase(found);
}

}  // namespace nexar::quic
