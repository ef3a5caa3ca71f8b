#include "security/certificate_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "support/test_cluster.hpp"

namespace nexar::security {
namespace {

using nexar::testing::TestCluster;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

void append_number(Bytes& out, std::size_t value, unsigned width) {
    for (unsigned i = width; i-- > 0;) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// A TLS 1.3 Certificate message without extensions.
Bytes message_of(const std::vector<Bytes>& certificates) {
    Bytes list;
    for (const Bytes& der : certificates) {
        append_number(list, der.size(), 3);
        std::ranges::copy(der, std::back_inserter(list));
        append_number(list, 0, 2);
    }
    Bytes body;
    append_number(body, 0, 1);
    append_number(body, list.size(), 3);
    std::ranges::copy(list, std::back_inserter(body));
    return body;
}

class CertificateMessageTest : public ::testing::Test {
protected:
    CertificateMessageTest() {
        const KeyPair key = KeyPair::generate().value();
        node_ = sign_certificate(cluster_.node_spec(1, key), {.key = cluster_.ca().key()}).value();
    }

    TestCluster cluster_;
    Bytes node_;
};

TEST_F(CertificateMessageTest, returns_the_certificates_in_order) {
    const Bytes ca = cluster_.ca().certificate().der();
    const Bytes body = message_of({node_, ca});
    const auto read = read_certificate_message(body);
    const auto& shown = std::get<ShownCertificates>(read);
    ASSERT_EQ(shown.count, 2U);
    EXPECT_TRUE(std::ranges::equal(shown.own(), node_));
    EXPECT_TRUE(std::ranges::equal(shown.der[1], ca));
}

TEST_F(CertificateMessageTest, treats_an_empty_list_as_a_missing_certificate) {
    const auto read = read_certificate_message(message_of({}));
    EXPECT_EQ(std::get<Refusal>(read).alert, Alert::certificate_required);
}

TEST_F(CertificateMessageTest, refuses_a_third_certificate_without_parsing_it) {
    const auto read = read_certificate_message(message_of({node_, node_, {}}));
    EXPECT_THAT(std::get<Refusal>(read).error.cause(), HasSubstr("more than 2 certificates"));
}

TEST_F(CertificateMessageTest, refuses_every_truncated_message) {
    const Bytes body = message_of({node_});
    for (std::size_t size = 0; size < body.size(); ++size) {
        const auto read = read_certificate_message(std::span(body).first(size));
        ASSERT_TRUE(std::holds_alternative<Refusal>(read)) << size;
        EXPECT_EQ(std::get<Refusal>(read).alert, Alert::decode_error) << size;
    }
}

TEST_F(CertificateMessageTest, refuses_trailing_bytes_and_a_context) {
    Bytes longer = message_of({node_});
    longer.push_back(std::byte{0});
    EXPECT_TRUE(std::holds_alternative<Refusal>(read_certificate_message(longer)));
    Bytes with_context{std::byte{1}, std::byte{7}};
    const Bytes plain = message_of({node_});
    std::ranges::copy(std::span(plain).subspan(1), std::back_inserter(with_context));
    EXPECT_TRUE(std::holds_alternative<Refusal>(read_certificate_message(with_context)));
}

TEST_F(CertificateMessageTest, refuses_bytes_that_are_not_a_certificate) {
    const auto read = read_certificate_message(message_of({Bytes(40, std::byte{0x30})}));
    EXPECT_EQ(std::get<Refusal>(read).alert, Alert::bad_certificate);
}

}  // namespace
}  // namespace nexar::security
