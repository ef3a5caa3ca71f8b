#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/assert.hpp"
#include "seeds.hpp"
#include "wire/codec.hpp"

/// Seeds for the frame decoders: encoded values, and variants with modified bytes.
namespace nexar::fuzz {

template <class Value>
Bytes encoded(const Value& value) {
    Bytes bytes(wire::encoded_size(value));
    const auto written = wire::encode(value, std::span<std::byte>(bytes));
    NEXAR_ASSERT(written.has_value(), "seeds must be valid values");
    return bytes;
}

inline Bytes without_last_byte(Bytes bytes) {
    bytes.pop_back();
    return bytes;
}

inline Bytes with_byte_behind(Bytes bytes) {
    bytes.push_back(std::byte{0});
    return bytes;
}

/// Adds an optional field without content and adjusts the lengths in the frame header.
inline Bytes with_field(Bytes frame, std::uint16_t id) {
    NEXAR_ASSERT(frame[2] < std::byte{0xfb} && frame[4] < std::byte{0xfb}, "no carry");
    for (const std::size_t at : {2U, 4U}) {
        frame[at] = static_cast<std::byte>(static_cast<unsigned>(frame[at]) + 4);
    }
    for (const unsigned byte : {unsigned{id} & 0xffU, unsigned{id} >> 8U, 0U, 0U}) {
        frame.push_back(static_cast<std::byte>(byte));
    }
    return frame;
}

template <class Message>
void add_message(const std::filesystem::path& root, const Message& plain, const Message& rich) {
    const std::string name(wire::name(Message::kType));
    const Corpus own(root, name);
    own.add("plain", encoded(plain));
    own.add("rich", encoded(rich));
    own.add("cut", without_last_byte(encoded(rich)));
    own.add("trailing", with_byte_behind(encoded(plain)));
    own.add("unknown_field", with_field(encoded(rich), 0x77));
    own.add("critical_field", with_field(encoded(rich), 0x8077));
    own.add("unordered_fields", with_field(with_field(encoded(rich), 0x77), 0x76));

    const Corpus frames(root, "frame");
    frames.add(name, encoded(rich));
    frames.add(name + "_cut", without_last_byte(encoded(plain)));
}

}  // namespace nexar::fuzz
