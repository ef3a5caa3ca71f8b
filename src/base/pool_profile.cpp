#include "base/pool_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/try.hpp"

namespace nexar {

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

Result<void> check_name(std::span<const PoolTier> before, const PoolTier& tier) {
    if (tier.name.empty() || tier.name == "unpooled" || tier.name == "total") {
        return Error(Errc::invalid_argument,
                     fmt::format("pool tier {} is named \"{}\"; a name must not be empty, "
                                 "\"unpooled\" or \"total\", which the statistics reserve",
                                 before.size() + 1, tier.name));
    }
    if (std::ranges::find(before, tier.name, &PoolTier::name) != before.end()) {
        return Error(Errc::invalid_argument,
                     fmt::format("two pool tiers are named \"{}\"; names must differ", tier.name));
    }
    return {};
}

Result<void> check_numbers(std::span<const PoolTier> before, const PoolTier& tier) {
    using B = PoolProfileBuilder;
    if (!std::has_single_bit(tier.limit_bytes) || tier.limit_bytes < B::kMinLimit ||
        tier.limit_bytes > B::kMaxLimit) {
        return Error(Errc::invalid_argument,
                     fmt::format("pool tier \"{}\" has a limit of {} bytes; it must be a power of "
                                 "two from {} (4 KiB) to {} (64 GiB)",
                                 tier.name, tier.limit_bytes, B::kMinLimit, B::kMaxLimit));
    }
    if (!before.empty() && tier.limit_bytes <= before.back().limit_bytes) {
        return Error(
            Errc::invalid_argument,
            fmt::format(
                "pool tier \"{}\" has a limit of {} bytes after tier \"{}\" with {}; limits "
                "must ascend",
                tier.name, tier.limit_bytes, before.back().name, before.back().limit_bytes));
    }
    if (tier.keep > B::kMaxKeep) {
        return Error(Errc::invalid_argument,
                     fmt::format("pool tier \"{}\" keeps {} buffers; it may keep 0 to {}",
                                 tier.name, tier.keep, B::kMaxKeep));
    }
    return {};
}

}  // namespace

PoolProfile PoolProfile::training() {
    return PoolProfile({{"small", 64 * kKiB, 256},
                        {"large", 8 * kMiB, 32},
                        {"huge", 64 * kMiB, 16},
                        {"giant", 256 * kMiB, 4}});
}

PoolProfile PoolProfile::inference() {
    return PoolProfile({{"small", 64 * kKiB, 256},
                        {"large", 8 * kMiB, 16},
                        {"huge", 64 * kMiB, 4},
                        {"giant", 256 * kMiB, 0}});
}

PoolProfileBuilder& PoolProfileBuilder::tier(std::string name, std::size_t limit_bytes,
                                             std::size_t keep) {
    tiers_.push_back({.name = std::move(name), .limit_bytes = limit_bytes, .keep = keep});
    return *this;
}

Result<PoolProfile> PoolProfileBuilder::build() const {
    if (tiers_.empty() || tiers_.size() > kMaxTiers) {
        return Error(Errc::invalid_argument,
                     fmt::format("a pool profile has {} tiers; it must have 1 to {}", tiers_.size(),
                                 kMaxTiers));
    }
    for (std::size_t i = 0; i < tiers_.size(); ++i) {
        const std::span<const PoolTier> before = std::span(tiers_).first(i);
        NEXAR_TRY(check_name(before, tiers_[i]));
        NEXAR_TRY(check_numbers(before, tiers_[i]));
    }
    return PoolProfile(tiers_);
}

}  // namespace nexar
