#include "security/der.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "support/test_cluster.hpp"

namespace nexar::security {
namespace {

using nexar::testing::TestCluster;
using Bytes = std::vector<std::byte>;

Bytes bytes(std::initializer_list<unsigned> values) {
    Bytes made;
    for (const unsigned v : values) made.push_back(static_cast<std::byte>(v));
    return made;
}

TEST(DerReader, reads_elements_one_after_another) {
    const Bytes input = bytes({0x02, 0x01, 0x07, 0x04, 0x81, 0x80});
    Bytes whole = input;
    whole.resize(input.size() + 0x80, std::byte{0xab});
    DerReader reader(whole);
    const auto first = reader.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->tag, std::byte{0x02});
    EXPECT_EQ(first->content.size(), 1U);
    EXPECT_FALSE(reader.next(std::byte{0x30})) << "the position does not change for another tag";
    const auto second = reader.next(std::byte{0x04});
    ASSERT_TRUE(second);
    EXPECT_EQ(second->content.size(), 0x80U);
    EXPECT_TRUE(reader.done());
    EXPECT_FALSE(reader.next());
}

TEST(DerReader, refuses_lengths_that_der_does_not_allow) {
    for (const Bytes& bad :
         {bytes({0x04}), bytes({0x04, 0x02, 0x00}), bytes({0x04, 0x80, 0x00, 0x00}),
          bytes({0x04, 0x81, 0x01, 0x00}), bytes({0x04, 0x82, 0x00, 0x01, 0x00}),
          bytes({0x04, 0x84, 0x00, 0x00, 0x00, 0x00}), bytes({0x04, 0x82, 0x01}),
          bytes({0x1f, 0x20, 0x00}), bytes({0x04, 0x83, 0xff, 0xff, 0xff})}) {
        DerReader reader(bad);
        EXPECT_FALSE(reader.next());
        EXPECT_FALSE(reader.done());
    }
}

class AlternativeNamesTest : public ::testing::Test {
protected:
    Bytes signed_with_names(std::size_t names) const {
        CertificateSpec spec = cluster_.node_spec(1, key_);
        spec.uris.resize(names, "https://host");
        return sign_certificate(
                   spec, {.key = cluster_.ca().key(), .certificate = &cluster_.ca().certificate()})
            .value();
    }

    TestCluster cluster_;
    KeyPair key_ = KeyPair::generate().value();
};

TEST_F(AlternativeNamesTest, are_counted_up_to_one_more_than_the_limit) {
    for (const std::size_t names : {0U, 1U, 2U, 8U, 9U}) {
        EXPECT_EQ(count_alternative_names(signed_with_names(names), 8), names);
    }
    EXPECT_EQ(count_alternative_names(signed_with_names(200), 8), 9U);
    EXPECT_EQ(count_alternative_names(cluster_.ca().certificate().der(), 8), 1U);
}

TEST_F(AlternativeNamesTest, are_not_counted_in_bytes_that_are_not_a_certificate) {
    Bytes good = signed_with_names(3);
    EXPECT_FALSE(count_alternative_names({}, 8));
    EXPECT_FALSE(count_alternative_names(std::span(good).first(good.size() - 1), 8));
    good.push_back(std::byte{0});
    EXPECT_FALSE(count_alternative_names(good, 8)) << "trailing byte";
}

}  // namespace
}  // namespace nexar::security
