#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wire/fault.hpp"

namespace nexar::wire {

/// The optional fields at the end of a body: each is id u16, length u16, content. Ids strictly
/// ascend from 1. A field that nobody asks for is skipped, unless its id has the top bit set: then
/// it must be understood and is refused.
class OptionalFields {
public:
    /// `bytes` and `fault` must outlive this.
    OptionalFields(std::span<const std::byte> bytes, FirstFault& fault)
        : rest_(bytes), fault_(&fault) {}

    /// Content of field `id` when it is there and has this length, else nullptr. Ask in the order
    /// of ids.
    const std::byte* take(std::uint16_t id, std::string_view field, std::size_t length);

    /// Call after the last take(): judges the fields that are left.
    void finish() {
        if (!rest_.empty()) skip_below(0x10000);
    }

    std::uint32_t skipped() const noexcept { return skipped_; }

private:
    struct Head {
        std::uint16_t id;
        std::uint16_t length;
    };

    std::optional<Head> next();
    void advance(const Head& past);
    void skip_below(std::uint32_t id);
    void fail(const Fault& fault);

    std::span<const std::byte> rest_;
    FirstFault* fault_;
    std::uint16_t last_id_ = 0;
    std::uint32_t skipped_ = 0;
};

}  // namespace nexar::wire
