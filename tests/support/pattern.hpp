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

/// Writes the content for `seed` from `offset` on. The bytes differ by position and seed, and do
/// not depend on those before them.
void fill_pattern(std::uint64_t seed, std::uint64_t offset, port::Bytes out) noexcept;

/// The XXH3 hash of the first `bytes` bytes of that content.
std::uint64_t pattern_hash(std::uint64_t seed, std::uint64_t bytes);

/// The content of one stream; the stream's prefix describes it to the receiver.
struct Payload {
    std::uint64_t seed = 0;
    std::uint64_t bytes = 0;

    friend auto operator<=>(const Payload&, const Payload&) = default;

    static constexpr std::size_t kPrefixBytes = 16;
    std::array<std::byte, kPrefixBytes> prefix() const noexcept;
};

/// A payload that is generated while it is sent.
class GeneratedSource final : public port::Source {
public:
    explicit GeneratedSource(const Payload& payload) noexcept : payload_(payload) {}

    std::uint64_t size() const noexcept override { return payload_.bytes; }
    std::span<const port::ConstBytes> regions() const noexcept override { return {}; }
    std::size_t fill(std::uint64_t offset, port::Bytes out) noexcept override;

private:
    Payload payload_;
};

/// A payload in memory of its own, presented in regions of uneven sizes.
class MemoryPayloadSource final : public port::Source {
public:
    /// `memory` is reused if it is large enough.
    MemoryPayloadSource(const Payload& payload, std::vector<std::byte> memory);

    std::uint64_t size() const noexcept override { return size_; }
    std::span<const port::ConstBytes> regions() const noexcept override { return regions_; }
    std::size_t fill(std::uint64_t /*offset*/, port::Bytes /*out*/) noexcept override { return 0; }

    /// Overwrites the content, so that the receiver detects a link that reads it again, and gives
    /// up the memory.
    std::vector<std::byte> poison() &&;

private:
    std::uint64_t size_;
    std::vector<std::byte> memory_;
    std::vector<port::ConstBytes> regions_;
};

/// Takes a payload with its prefix and keeps only a hash of it.
class HashingSink final : public port::Sink {
public:
    HashingSink();

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

    /// The payload that the prefix describes; valid once the whole prefix has arrived.
    Payload announced() const noexcept;
    std::uint64_t taken() const noexcept { return taken_; }
    /// Empty if exactly the announced payload has arrived, otherwise a description of the fault.
    std::string verdict() const;

private:
    struct StateFree {
        void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
    };

    std::unique_ptr<XXH3_state_t, StateFree> hash_;
    std::array<std::byte, Payload::kPrefixBytes> prefix_{};
    std::uint64_t taken_ = 0;  // including the prefix
    bool in_order_ = true;
};

}  // namespace nexar::testing
