#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wire/fault.hpp"

namespace nexar::wire {

/// Reads the optional fields at the end of a body: each is id u16, length u16, content. Ids
/// strictly ascend from 1. An unknown field is skipped, unless the top bit of its id is set: such a
/// field is mandatory, so it is a fault.
class OptionalFields {
public:
    /// `bytes` and `fault` must outlive this.
    OptionalFields(std::span<const std::byte> bytes, FirstFault& fault)
        : rest_(bytes), fault_(&fault) {}

    /// The content of field `id` if it is present and has this length, else nullptr. Call in the
    /// order of ids.
    const std::byte* take(std::uint16_t id, std::string_view field, std::size_t length);

    /// Call after the last take(): checks the remaining fields.
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
