#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "samples.hpp"
#include "wire/codec.hpp"

/// Checks for the limits of a field: a value at the limit is accepted; encoder and decoder reject
/// one beyond it with an error that names the field.
namespace nexar::wire::testing {

/// `message` encoded, then `width` bytes of the body overwritten at `offset`.
template <class Message>
Bytes patched(const Message& message, std::size_t offset, std::uint64_t value, unsigned width) {
    Bytes bytes = encoded(message);
    for (unsigned i = 0; i < width; ++i) {
        bytes.at(kFrameHeaderBytes + offset + i) = static_cast<std::byte>(value >> (8 * i));
    }
    return bytes;
}

inline void expect_accepted(const Bytes& bytes) {
    const auto decoded = decode_frame(bytes);
    ASSERT_TRUE(decoded) << decoded.error().what();
    EXPECT_EQ(std::visit([](const auto& m) { return encoded(m); }, decoded->message), bytes);
}

inline void expect_refused(const Bytes& bytes, Errc code, const std::string& words) {
    const auto decoded = decode_frame(bytes);
    ASSERT_FALSE(decoded) << words;
    EXPECT_EQ(decoded.error().code(), code) << decoded.error().what();
    EXPECT_THAT(decoded.error().cause(), ::testing::HasSubstr(words));
    EXPECT_LT(decoded.error().cause().size(), 300U)
        << "a peer must not be able to make errors expensive";
}

template <class Message>
void expect_not_encoded(const Message& message, const std::string& words) {
    Bytes room(encoded_size(message), std::byte{0xaa});
    const auto written = encode(message, std::span<std::byte>(room));
    ASSERT_FALSE(written) << words;
    EXPECT_EQ(written.error().code(), Errc::invalid_argument);
    EXPECT_THAT(written.error().cause(), ::testing::HasSubstr(words));
    EXPECT_TRUE(room == Bytes(room.size(), std::byte{0xaa})) << "nothing is written on failure";
}

template <class Message, class Change>
Message changed(Change change) {
    auto message = example<Message>();
    change(message);
    return message;
}

inline std::string letters(std::size_t n) {
    return std::string(n, 'x');
}

}  // namespace nexar::wire::testing
