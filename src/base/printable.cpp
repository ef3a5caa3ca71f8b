#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/assert.hpp"

namespace nexar {

namespace {

constexpr std::string_view kCut = "...";
constexpr std::size_t kQuotedLimit = 64;

/// The first character of a text: its length in bytes, and its code point if it is valid UTF-8.
struct Character {
    std::size_t length = 1;
    bool valid = false;
    std::uint32_t code = 0;
};

std::uint32_t byte_at(std::string_view text, std::size_t i) noexcept {
    return static_cast<unsigned char>(text[i]);
}

/// Accepts UTF-8 as in RFC 3629: shortest form only, no surrogates, nothing above U+10FFFF.
Character first_character(std::string_view text) noexcept {
    const std::uint32_t head = byte_at(text, 0);
    if (head < 0x80) return {.length = 1, .valid = true, .code = head};
    const std::size_t length = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : 2;
    constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
    if (head < 0xc2 || head > 0xf4 || text.size() < length) return {};
    std::uint32_t code = head & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const std::uint32_t next = byte_at(text, i);
        if ((next & 0xc0U) != 0x80U) return {};
        code = code << 6 | (next & 0x3fU);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < kSmallest[length] || code > 0x10ffff || surrogate) return {};
    return {.length = length, .valid = true, .code = code};
}

bool can_be_shown(std::uint32_t code) noexcept {
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return false;
    const bool separator_or_override = code >= 0x2028 && code <= 0x202e;
    const bool isolate = code >= 0x2066 && code <= 0x2069;
    return !separator_or_override && !isolate;
}

/// True if the character needs no escape.
bool is_shown_as_it_is(const Character& character) noexcept {
    return character.valid && can_be_shown(character.code);
}

/// The longest escape: four bytes of a character, each as `\xNN`.
using Escape = std::array<char, 16>;

std::string_view escape(std::string_view bytes, Escape& room) noexcept {
    if (bytes == "\n") return "\\n";
    if (bytes == "\r") return "\\r";
    if (bytes == "\t") return "\\t";
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::size_t n = 0;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        room[n++] = '\\';
        room[n++] = 'x';
        room[n++] = kDigits[byte >> 4U];
        room[n++] = kDigits[byte & 0xfU];
    }
    return {room.data(), n};
}

}  // namespace

std::size_t write_printable(std::string_view text, std::span<char> out) noexcept {
    NEXAR_ASSERT(out.size() >= kCut.size());
    std::size_t written = 0;
    std::size_t cut_at = 0;  // the last character boundary after which kCut still fits
    while (!text.empty()) {
        const Character character = first_character(text);
        Escape room;
        std::string_view piece = text.substr(0, character.length);
        if (!is_shown_as_it_is(character)) piece = escape(piece, room);
        if (piece.size() > out.size() - written) {
            std::ranges::copy(kCut, out.begin() + static_cast<std::ptrdiff_t>(cut_at));
            return cut_at + kCut.size();
        }
        std::ranges::copy(piece, out.begin() + static_cast<std::ptrdiff_t>(written));
        written += piece.size();
        if (written + kCut.size() <= out.size()) cut_at = written;
        text.remove_prefix(character.length);
    }
    return written;
}

std::optional<std::size_t> first_unprintable(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size();) {
        const Character character = first_character(text.substr(at));
        if (!is_shown_as_it_is(character)) return at;
        at += character.length;
    }
    return std::nullopt;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
    // An escape is at most four times as long as the bytes it replaces.
    std::string shown(std::min(max_bytes, std::max(4 * text.size(), kCut.size())), '\0');
    shown.resize(write_printable(text, shown));
    return shown;
}

std::string in_quotes(std::string_view text) {
    std::array<char, kQuotedLimit + 2> room{};
    room[0] = '"';
    const std::size_t n = write_printable(text, std::span(room).subspan(1, kQuotedLimit));
    room[n + 1] = '"';
    return {room.data(), n + 2};
}

}  // namespace nexar
