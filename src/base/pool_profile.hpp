#pragma once

#include <cstddef>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <vector>

namespace nexar {

/// Buffers up to `limit_bytes` that are too large for the previous tier. The pool keeps at most
/// `keep` idle ones, over all size classes of the tier together.
struct PoolTier {
    std::string name{};
    std::size_t limit_bytes = 0;
    std::size_t keep = 0;
};

/// Which buffers a BufferPool keeps: its tiers in ascending order. Always valid; created by one of
/// the functions below or by a PoolProfileBuilder.
class PoolProfile {
public:
    /// Tier   limit     kept by training   kept by inference
    /// small  64 KiB                  256                256
    /// large   8 MiB                   32                 16
    /// huge   64 MiB                   16                  4
    /// giant 256 MiB                    4                  0
    static PoolProfile training();
    static PoolProfile inference();

    std::span<const PoolTier> tiers() const noexcept { return tiers_; }

private:
    friend class PoolProfileBuilder;
    explicit PoolProfile(std::vector<PoolTier> tiers) noexcept : tiers_(std::move(tiers)) {}

    std::vector<PoolTier> tiers_;
};

/// PoolProfileBuilder().tier("small", 64 << 10, 256).tier("large", 8 << 20, 32).build()
class PoolProfileBuilder {
public:
    static constexpr std::size_t kMaxTiers = 8;
    static constexpr std::size_t kMinLimit = std::size_t{4} << 10;
    static constexpr std::size_t kMaxLimit = std::size_t{64} << 30;
    static constexpr std::size_t kMaxKeep = 65536;

    /// Adds a tier above those added so far.
    PoolProfileBuilder& tier(std::string name, std::size_t limit_bytes, std::size_t keep);

    /// Fails with invalid_argument, naming the tier, the value and what is allowed: 1 to kMaxTiers
    /// tiers with different names; ascending limits that are powers of two from kMinLimit to
    /// kMaxLimit; keep from 0 to kMaxKeep. The names "unpooled" and "total" are reserved.
    Result<PoolProfile> build() const;

private:
    std::vector<PoolTier> tiers_;
};

}  // namespace nexar
