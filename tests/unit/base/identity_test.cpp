#include "base/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <unordered_set>

namespace nexar {
namespace {

using ::testing::HasSubstr;

constexpr const char* kText = "00112233445566778899aabbccddeeff";

static_assert(!std::is_convertible_v<ClusterId, NodeId> &&
                  !std::is_constructible_v<NodeId, ClusterId>,
              "a cluster id is not a node id");

TEST(RandomId, has_32_hexadecimal_digits) {
    const NodeId id = NodeId::from_hex(kText).value();
    EXPECT_EQ(id.to_hex(), kText);
    EXPECT_EQ(id.bytes()[1], std::byte{0x11});
    EXPECT_EQ(id.bytes()[15], std::byte{0xff});
    EXPECT_EQ(NodeId().to_hex(), std::string(32, '0'));
}

TEST(RandomId, has_one_text_form) {
    for (const std::string bad :
         {"", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeeff0",
          "00112233445566778899AABBCCDDEEFF", "00112233445566778899aabbccddeefg",
          " 0112233445566778899aabbccddeeff"}) {
        const auto id = ClusterId::from_hex(bad);
        ASSERT_FALSE(id) << bad;
        EXPECT_EQ(id.error().code(), Errc::invalid_argument);
        EXPECT_THAT(id.error().cause(), HasSubstr("is not a cluster id"));
    }
}

TEST(RandomId, compares_and_hashes_by_its_bytes) {
    const NodeId low = NodeId::from_hex("00112233445566778899aabbccddee00").value();
    const NodeId high = NodeId::from_hex(kText).value();
    EXPECT_LT(low, high);
    const std::unordered_set<NodeId> set{low, high, low};
    EXPECT_EQ(set.size(), 2U);
    EXPECT_NE(std::hash<NodeId>{}(NodeId::from_hex("10112233445566778899aabbccddeeff").value()),
              std::hash<NodeId>{}(high));
}

TEST(Identity, differs_in_each_of_its_parts) {
    const Identity one{ClusterId::from_hex(kText).value(), NodeId::from_hex(kText).value(),
                       Incarnation(3)};
    Identity other = one;
    EXPECT_EQ(one, other);
    other.incarnation = Incarnation(4);
    EXPECT_LT(one, other);
}

}  // namespace
}  // namespace nexar
