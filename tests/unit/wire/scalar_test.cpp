#include "wire/scalar.hpp"

#include <gtest/gtest.h>

#include <array>

#include "samples.hpp"

namespace nexar::wire {
namespace {

TEST(Scalar, is_little_endian_at_any_alignment) {
    std::array<std::byte, 12> bytes{};
    for (std::size_t at = 0; at < 4; ++at) {
        store(bytes.data() + at, std::uint64_t{0x1122334455667788});
        EXPECT_EQ(testing::to_hex(std::span(bytes).subspan(at, 8)), "88 77 66 55 44 33 22 11 ");
        EXPECT_EQ(load<std::uint64_t>(bytes.data() + at), 0x1122334455667788U);
        EXPECT_EQ(load<std::uint32_t>(bytes.data() + at), 0x55667788U);
        EXPECT_EQ(load<std::uint16_t>(bytes.data() + at), 0x7788U);
        EXPECT_EQ(load<std::uint8_t>(bytes.data() + at), 0x88U);
    }
}

TEST(Scalar, store_writes_only_its_own_bytes) {
    std::array<std::byte, 10> bytes{};
    store(bytes.data() + 1, ~std::uint64_t{0});
    EXPECT_EQ(bytes.front(), std::byte{0});
    EXPECT_EQ(bytes.back(), std::byte{0});
    EXPECT_EQ(bytes[8], std::byte{0xff});
}

TEST(Scalar, bounds_include_both_ends) {
    EXPECT_FALSE(within(2, {3, 5}));
    EXPECT_TRUE(within(3, {3, 5}));
    EXPECT_TRUE(within(5, {3, 5}));
    EXPECT_FALSE(within(6, {3, 5}));
    EXPECT_EQ(out_of_bounds("x", 2, {3, 5}).kind, FaultKind::below);
    EXPECT_EQ(out_of_bounds("x", 6, {3, 5}).kind, FaultKind::above);
}

}  // namespace
}  // namespace nexar::wire
