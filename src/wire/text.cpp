#include "wire/text.hpp"

#include <algorithm>
#include <cstdint>

namespace nexar::wire {

namespace {

constexpr bool is_continuation(unsigned char byte) {
    return (byte & 0xc0U) == 0x80U;
}

constexpr bool is_forbidden(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

// Bytes of the sequence that a lead byte announces; 0 where no sequence starts with it.
constexpr std::size_t announced(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return 2;
    if (lead >= 0xe0 && lead <= 0xef) return 3;
    if (lead >= 0xf0 && lead <= 0xf4) return 4;
    return 0;
}

constexpr bool is_scalar_of_length(std::uint32_t c, std::size_t length) {
    if (length == 3) return c >= 0x800 && (c < 0xd800 || c > 0xdfff);  // no surrogates
    if (length == 4) return c >= 0x10000 && c <= 0x10ffff;
    return true;  // the lead bytes of shorter sequences exclude the overlong ones
}

// Bytes of the allowed character at the front of a text that is not empty; 0 when there is none.
std::size_t printable_character(std::string_view text) noexcept {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = announced(lead);
    if (length == 0 || length > text.size()) return 0;
    std::uint32_t c = length == 1 ? lead : lead & (0x7fU >> length);
    for (const char next : text.substr(1, length - 1)) {
        const auto byte = static_cast<unsigned char>(next);
        if (!is_continuation(byte)) return 0;
        c = c << 6 | (byte & 0x3fU);
    }
    return is_scalar_of_length(c, length) && !is_forbidden(c) ? length : 0;
}

}  // namespace

std::optional<std::size_t> first_unprintable(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = printable_character(text.substr(at));
        if (length == 0) return at;
        at += length;
    }
    return std::nullopt;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
    std::string clean;
    clean.reserve(std::min(text.size(), max_bytes));
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = printable_character(text.substr(at));
        if (clean.size() + std::max<std::size_t>(length, 1) > max_bytes) break;
        if (length == 0) {
            clean += '?';
            at += 1;
        } else {
            clean += text.substr(at, length);
            at += length;
        }
    }
    return clean;
}

}  // namespace nexar::wire
