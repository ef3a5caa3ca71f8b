#pragma once

#include <xxhash.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "port/stream.hpp"

namespace nexar::testing {

/// Writes what stands from `offset` on in the content that belongs to `seed`: other bytes at every
/// place and for every seed, made without what stands before.
void fill_pattern(std::uint64_t seed, std::uint64_t offset, port::Bytes out) noexcept;

/// The XXH3 hash of the first `bytes` bytes of that content.
std::uint64_t pattern_hash(std::uint64_t seed, std::uint64_t bytes);

/// What one stream carries, told to the receiver by the stream's prefix.
struct Payload {
    std::uint64_t seed = 0;
    std::uint64_t bytes = 0;

    friend auto operator<=>(const Payload&, const Payload&) = default;

    static constexpr std::size_t kPrefixBytes = 16;
    std::array<std::byte, kPrefixBytes> prefix() const noexcept;
};

/// A payload that is made while it is sent.
class GeneratedSource final : public port::Source {
public:
    explicit GeneratedSource(const Payload& payload) noexcept : payload_(payload) {}

    std::uint64_t size() const noexcept override { return payload_.bytes; }
    std::span<const port::ConstBytes> regions() const noexcept override { return {}; }
    std::size_t fill(std::uint64_t offset, port::Bytes out) noexcept override;

private:
    Payload payload_;
};

/// A payload in memory of its own, shown in regions of uneven sizes.
class MemoryPayloadSource final : public port::Source {
public:
    /// `memory` is reused if it is large enough.
    MemoryPayloadSource(const Payload& payload, std::vector<std::byte> memory);

    std::uint64_t size() const noexcept override { return size_; }
    std::span<const port::ConstBytes> regions() const noexcept override { return regions_; }
    std::size_t fill(std::uint64_t /*offset*/, port::Bytes /*out*/) noexcept override { return 0; }

    /// Overwrites the content, so that whoever reads it again sends what the receiver will not
    /// take for right, and gives the memory up.
    std::vector<std::byte> poison() &&;

private:
    std::uint64_t size_;
    std::vector<std::byte> memory_;
    std::vector<port::ConstBytes> regions_;
};

/// Takes a payload with its prefix and keeps a hash of it only.
class HashingSink final : public port::Sink {
public:
    HashingSink();

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

    /// What the prefix announced; valid when all of it was taken.
    Payload announced() const noexcept;
    std::uint64_t taken() const noexcept { return taken_; }
    /// Empty when what was taken is the payload that was announced, whole; else what is wrong.
    std::string verdict() const;

private:
    struct StateFree {
        void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
    };

    std::unique_ptr<XXH3_state_t, StateFree> hash_;
    std::array<std::byte, Payload::kPrefixBytes> prefix_{};
    std::uint64_t taken_ = 0;  // prefix included
    bool in_order_ = true;
};

}  // namespace nexar::testing
