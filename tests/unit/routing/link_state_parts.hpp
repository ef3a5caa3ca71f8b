#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <vector>

#include "base/mix.hpp"
#include "base/view.hpp"
#include "port/signer.hpp"
#include "routing/link_states.hpp"

/// Members, keys and views for the tests of link states.
namespace nexar::routing::link_state_tests {

inline constexpr ClusterId kCluster{std::array<std::byte, 16>{std::byte{7}}};

/// A signer whose keys are the ranks of their owners, so that tests can forge signatures. Not
/// secure.
class FakeSigner final : public port::Signer {
public:
    explicit FakeSigner(Rank owner) : key_(key_of(owner)) {}

    static port::RawKey key_of(Rank owner) {
        port::RawKey key{};
        for (std::size_t i = 0; i < 4; ++i) {
            key[i] = static_cast<std::byte>(owner.value() >> (8 * i));
        }
        return key;
    }

    static std::array<std::byte, 32> hash_of(const port::RawKey& key) {
        std::array<std::byte, 32> hash = key;
        for (std::byte& byte : hash) byte ^= std::byte{0x5a};
        return hash;
    }

    const port::RawKey& key() const noexcept override { return key_; }

    port::Signature sign(std::span<const std::byte> bytes) const override {
        return signature(bytes, key_);
    }

    bool verify(std::span<const std::byte> bytes, const port::RawKey& key,
                const std::array<std::byte, 32>& key_hash,
                const port::Signature& shown) const override {
        ++verifications_;
        return hash_of(key) == key_hash && signature(bytes, key) == shown;
    }

    int verifications() const noexcept { return verifications_; }

private:
    static port::Signature signature(std::span<const std::byte> bytes, const port::RawKey& key) {
        std::uint64_t sum = 1;
        for (const std::byte byte : key) sum = mixed(sum ^ std::to_integer<std::uint64_t>(byte));
        for (const std::byte byte : bytes) {
            sum = (sum ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
        }
        port::Signature signature{};
        for (std::size_t i = 0; i < 8; ++i) {
            signature[i] = static_cast<std::byte>(mixed(sum) >> (8 * i));
        }
        return signature;
    }

    port::RawKey key_;
    mutable int verifications_ = 0;
};

inline Member member(Rank rank, std::uint64_t incarnation = 1) {
    std::array<std::byte, 16> node{};
    node[0] = static_cast<std::byte>(rank.value());
    node[1] = static_cast<std::byte>(rank.value() >> 8U);
    return {.node = NodeId(node),
            .incarnation = Incarnation(incarnation),
            .rank = rank,
            .key_hash = FakeSigner::hash_of(FakeSigner::key_of(rank))};
}

inline View view_of(std::uint64_t epoch, const std::set<std::uint32_t>& ranks) {
    View view{.epoch = Epoch(epoch)};
    for (const std::uint32_t rank : ranks) view.members.push_back(member(Rank(rank)));
    return view;
}

inline std::vector<Rank> ranks(std::initializer_list<std::uint32_t> values) {
    std::vector<Rank> all;
    for (const std::uint32_t value : values) all.emplace_back(value);
    return all;
}

/// A state that `origin` signed.
inline wire::LinkState signed_state(std::uint32_t origin, std::uint64_t version,
                                    std::vector<Rank> down, std::uint64_t epoch = 1,
                                    std::uint64_t incarnation = 1) {
    const FakeSigner signer{Rank(origin)};
    wire::LinkState state{.origin = Rank(origin),
                          .incarnation = incarnation,
                          .epoch = Epoch(epoch),
                          .version = version,
                          .down = std::move(down),
                          .key = signer.key()};
    state.signature = signer.sign(wire::signed_bytes(kCluster, state));
    return state;
}

inline std::vector<RankPair> pairs(
    std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> values) {
    std::vector<RankPair> all;
    for (const auto& [a, b] : values) all.emplace_back(Rank(a), Rank(b));
    return all;
}

}  // namespace nexar::routing::link_state_tests
