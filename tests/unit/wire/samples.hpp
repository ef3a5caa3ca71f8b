#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/codec.hpp"

/// Values and bytes for the tests of this folder.
namespace nexar::wire::testing {

using Bytes = std::vector<std::byte>;

/// A seeded source of random values, about half of them near the limits. Prints its seed;
/// NEXAR_TEST_SEED=n repeats a run.
class Random {
public:
    Random();

    std::uint64_t below(std::uint64_t bound);  // bound > 0
    std::uint64_t upto(std::uint64_t max) { return max == ~0ULL ? engine_() : below(max + 1); }
    bool coin() { return below(2) == 1; }

    /// From min to max; small, large and extreme values are all likely.
    std::uint64_t number(std::uint64_t min, std::uint64_t max);

    /// Valid text of at most max_bytes, with characters of 1 to 4 bytes.
    std::string text(std::size_t max_bytes);

    Bytes bytes(std::size_t max_bytes);

private:
    std::mt19937_64 engine_;
};

/// A random value within all limits; optional fields are set or omitted at random.
template <class Message>
Message random_message(Random& random);

/// A fixed value in which each field differs from its default and from its neighbours.
template <class Message>
Message example();

// Declared because sources that a unity build puts before samples_routing.cpp use them.
template <>
EnvelopeFrame random_message<EnvelopeFrame>(Random& random);
template <>
EnvelopeFrame example<EnvelopeFrame>();
template <>
LinkState example<LinkState>();
template <>
PathRequest example<PathRequest>();

template <class Message>
Bytes encoded(const Message& message) {
    Bytes bytes(encoded_size(message));
    const auto written = encode(message, std::span<std::byte>(bytes));
    EXPECT_TRUE(written) << written.error().what();
    if (written) {
        EXPECT_EQ(*written, bytes.size());
    }
    return bytes;
}

/// "01 ff 0a" to bytes.
Bytes from_hex(std::string_view hex);
std::string to_hex(std::span<const std::byte> bytes);

/// A frame with this body, whose last `extension_bytes` are optional fields.
Bytes frame(FrameType type, const Bytes& body, std::size_t extension_bytes = 0);

/// `message` with these bytes after its own optional fields.
template <class Message>
Bytes with_extension(const Message& message, std::string_view hex) {
    Bytes bytes = encoded(message);
    const Bytes extra = from_hex(hex);
    const auto add = [&](std::size_t at, std::size_t width) {
        std::size_t value = extra.size();
        for (std::size_t i = 0; i < width; ++i) {
            value += static_cast<std::size_t>(bytes[at + i]) << (8 * i);
        }
        for (std::size_t i = 0; i < width; ++i) {
            bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
        }
    };
    add(2, 2);
    add(4, 4);
    bytes.insert(bytes.end(), extra.begin(), extra.end());
    return bytes;
}

}  // namespace nexar::wire::testing
