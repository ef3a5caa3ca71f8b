#include "security/signing_request.hpp"

#include <gtest/gtest.h>

#include <array>

namespace nexar::security {
namespace {

using Binding = std::array<std::byte, SigningRequest::kBindingBytes>;

Binding some_binding(unsigned seed) {
    Binding binding{};
    for (std::size_t i = 0; i < binding.size(); ++i) {
        binding[i] = static_cast<std::byte>(seed + 7 * i);
    }
    return binding;
}

class SigningRequestTest : public ::testing::Test {
protected:
    KeyPair key_ = KeyPair::generate().value();
    Binding binding_ = some_binding(3);
    SigningRequest request_ = SigningRequest::create(key_, binding_).value();
};

TEST_F(SigningRequestTest, contains_the_key_that_signed_it) {
    const auto read = SigningRequest::from_der(request_.der(), binding_);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->public_key(), key_.public_key());
    EXPECT_LE(request_.der().size(), SigningRequest::kMaxBytes);
}

TEST_F(SigningRequestTest, is_refused_on_another_connection) {
    for (std::size_t i = 0; i < binding_.size(); ++i) {
        Binding other = binding_;
        other[i] ^= std::byte{0x10};
        EXPECT_EQ(SigningRequest::from_der(request_.der(), other).error().code(),
                  Errc::unauthenticated);
    }
}

TEST_F(SigningRequestTest, is_refused_if_any_byte_changes) {
    for (std::size_t i = 0; i < request_.der().size(); ++i) {
        auto der = request_.der();
        der[i] ^= std::byte{0x01};
        EXPECT_FALSE(SigningRequest::from_der(der, binding_)) << i;
    }
}

TEST_F(SigningRequestTest, is_refused_if_truncated_or_too_large) {
    const auto& der = request_.der();
    for (std::size_t size = 0; size < der.size(); ++size) {
        EXPECT_FALSE(SigningRequest::from_der(std::span(der).first(size), binding_));
    }
    const std::vector<std::byte> large(SigningRequest::kMaxBytes + 1);
    EXPECT_EQ(SigningRequest::from_der(large, binding_).error().code(), Errc::limit_exceeded);
}

}  // namespace
}  // namespace nexar::security
