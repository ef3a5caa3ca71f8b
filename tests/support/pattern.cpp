#include "support/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/random.hpp"

namespace nexar::testing {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) noexcept {
    return SplitMix64(seed + index * 0x9e3779b97f4a7c15U).next();
}

}  // namespace

void fill_pattern(std::uint64_t seed, std::uint64_t offset, port::Bytes out) noexcept {
    while (!out.empty()) {
        const std::uint64_t word = word_at(seed, offset / kWord);
        const std::size_t skip = offset % kWord;
        const std::size_t bytes = std::min(kWord - skip, out.size());
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&word) + skip, bytes);
        out = out.subspan(bytes);
        offset += bytes;
    }
}

std::uint64_t pattern_hash(std::uint64_t seed, std::uint64_t bytes) {
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                        &XXH3_freeState);
    XXH3_64bits_reset(hash.get());
    std::vector<std::byte> piece(64 * 1024);
    for (std::uint64_t at = 0; at < bytes;) {
        const std::size_t size = std::min<std::uint64_t>(piece.size(), bytes - at);
        fill_pattern(seed, at, std::span(piece).first(size));
        XXH3_64bits_update(hash.get(), piece.data(), size);
        at += size;
    }
    return XXH3_64bits_digest(hash.get());
}

std::array<std::byte, Payload::kPrefixBytes> Payload::prefix() const noexcept {
    static_assert(sizeof(Payload) == kPrefixBytes);
    std::array<std::byte, kPrefixBytes> bytes_of_it{};
    std::memcpy(bytes_of_it.data(), this, kPrefixBytes);
    return bytes_of_it;
}

std::size_t GeneratedSource::fill(std::uint64_t offset, port::Bytes out) noexcept {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), payload_.bytes - offset));
    fill_pattern(payload_.seed, offset, out.first(bytes));
    return bytes;
}

MemoryPayloadSource::MemoryPayloadSource(const Payload& payload, std::vector<std::byte> memory)
    : size_(payload.bytes), memory_(std::move(memory)) {
    memory_.resize(static_cast<std::size_t>(payload.bytes));
    fill_pattern(payload.seed, 0, memory_);
    Random random(payload.seed);
    port::ConstBytes rest = memory_;
    while (!rest.empty()) {
        const std::size_t size = std::min<std::size_t>(1 + random.below(100'000), rest.size());
        regions_.push_back(rest.first(size));
        rest = rest.subspan(size);
    }
}

std::vector<std::byte> MemoryPayloadSource::poison() && {
    std::ranges::fill(memory_, std::byte{0xdb});
    return std::move(memory_);
}

HashingSink::HashingSink() : hash_(XXH3_createState()) {
    XXH3_64bits_reset(hash_.get());
}

std::size_t HashingSink::write(std::uint64_t offset, port::ConstBytes bytes) noexcept {
    in_order_ = in_order_ && offset == taken_;
    const std::size_t all = bytes.size();
    if (taken_ < prefix_.size()) {
        const std::size_t head = std::min<std::size_t>(prefix_.size() - taken_, bytes.size());
        std::memcpy(prefix_.data() + taken_, bytes.data(), head);
        bytes = bytes.subspan(head);
    }
    XXH3_64bits_update(hash_.get(), bytes.data(), bytes.size());
    taken_ += all;
    return all;
}

Payload HashingSink::announced() const noexcept {
    Payload payload;
    std::memcpy(&payload, prefix_.data(), prefix_.size());
    return payload;
}

std::string HashingSink::verdict() const {
    if (taken_ < prefix_.size())
        return fmt::format("only {} bytes arrived, less than the prefix", taken_);
    const Payload payload = announced();
    if (!in_order_) return fmt::format("payload {} arrived with gaps", payload.seed);
    if (taken_ - prefix_.size() != payload.bytes) {
        return fmt::format("payload {} has {} bytes instead of {}", payload.seed,
                           taken_ - prefix_.size(), payload.bytes);
    }
    const std::uint64_t expected = pattern_hash(payload.seed, payload.bytes);
    const std::uint64_t found = XXH3_64bits_digest(hash_.get());
    if (found == expected) return {};
    return fmt::format("payload {} of {} bytes has the hash {:x} instead of {:x}", payload.seed,
                       payload.bytes, found, expected);
}

}  // namespace nexar::testing
