#include "base/identity.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"

namespace nexar::detail {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string hex_digits(std::span<const std::byte> bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte b : bytes) {
        text += kDigits[std::to_integer<std::size_t>(b >> 4)];
        text += kDigits[std::to_integer<std::size_t>(b & std::byte{0xf})];
    }
    return text;
}

bool from_hex_digits(std::string_view text, std::span<std::byte> out) noexcept {
    if (text.size() != 2 * out.size()) return false;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t high = kDigits.find(text[2 * i]);
        const std::size_t low = kDigits.find(text[2 * i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) return false;
        out[i] = static_cast<std::byte>(high * 16 + low);
    }
    return true;
}

Error not_an_id(std::string_view what, std::string_view text) {
    return {Errc::invalid_argument,
            fmt::format("{} is not a {}; write 32 hexadecimal digits (0-9, a-f)", in_quotes(text),
                        what)};
}

}  // namespace nexar::detail
