#include "message_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nexar/error.hpp>
#include <optional>

#include "base/random.hpp"

namespace nexar::bench {

namespace {

constexpr std::uint64_t kContentSeed = 20'260'101;

Random content_of(std::size_t slot) {
    return Random(kContentSeed + slot);
}

/// The first position at which the bytes differ from the content of the slot, if any.
std::optional<std::size_t> first_difference(std::span<const std::byte> bytes, std::size_t slot) {
    Random content = content_of(slot);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t wanted = content.next();
        if (std::memcmp(bytes.data() + at, &wanted, sizeof wanted) != 0) return at;
    }
    return std::nullopt;
}

}  // namespace

MessageRing::MessageRing() {
    for (auto& slot : memory_) {
        slot.reset(static_cast<std::byte*>(::operator new[](kMessageBytes, kPage)));
    }
    clear();
}

void MessageRing::fill() {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
        Random content = content_of(slot);
        for (std::size_t at = 0; at < kMessageBytes; at += sizeof(std::uint64_t)) {
            const std::uint64_t number = content.next();
            std::memcpy(memory_[slot].get() + at, &number, sizeof number);
        }
    }
}

void MessageRing::clear() {
    for (auto& slot : memory_) std::memset(slot.get(), 0, kMessageBytes);
}

void MessageRing::check() const {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
        std::size_t right = 0;  // bytes of the best match
        for (std::size_t content = 0; content < kSlots; ++content) {
            right =
                std::max(right, first_difference((*this)[slot], content).value_or(kMessageBytes));
        }
        if (right == kMessageBytes) continue;
        throw Error(Errc::malformed, fmt::format("a message of {} bytes arrived with wrong "
                                                 "content from byte {} on: the transport is "
                                                 "broken",
                                                 kMessageBytes, right));
    }
}

}  // namespace nexar::bench
