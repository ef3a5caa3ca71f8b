#include "security/alert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "security/refusal.hpp"

namespace nexar::security {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Alert, has_its_name_from_rfc_8446) {
    EXPECT_EQ(name(Alert::unknown_ca), "unknown_ca");
    EXPECT_EQ(name(static_cast<Alert>(116)), "certificate_required");
    EXPECT_EQ(name(static_cast<Alert>(255)), "unknown");
}

TEST(PeerRefused, groups_alerts_by_what_the_user_can_do) {
    EXPECT_EQ(peer_refused(Alert::certificate_expired, "").code(), Errc::unauthenticated);
    EXPECT_EQ(peer_refused(Alert::certificate_required, "").code(), Errc::unauthenticated);
    EXPECT_EQ(peer_refused(Alert::no_application_protocol, "").code(), Errc::version_mismatch);
    EXPECT_EQ(peer_refused(Alert::internal_error, "").code(), Errc::malformed);
    EXPECT_EQ(peer_refused(static_cast<Alert>(77), "").code(), Errc::malformed);
    EXPECT_EQ(handshake_failed(Alert::decode_error).code(), Errc::limit_exceeded);
    EXPECT_EQ(handshake_failed(Alert::decrypt_error).code(), Errc::unauthenticated);
}

TEST(PeerRefused, quotes_the_reason_of_the_peer_on_one_line_of_limited_length) {
    const std::string cause =
        peer_refused(Alert::unknown_ca, "line\nforged \x1b[31m" + std::string(500, 'x')).cause();
    EXPECT_THAT(cause, Not(HasSubstr("\n")));
    EXPECT_THAT(cause, HasSubstr("line\\nforged"));
    EXPECT_THAT(cause, HasSubstr("TLS alert 48, unknown_ca"));
    EXPECT_LT(cause.size(), 300U);
    EXPECT_THAT(peer_refused(Alert::unknown_ca, "").cause(), HasSubstr("without a reason"));
}

TEST(Refusal, tells_the_peer_at_most_120_bytes) {
    const Refusal refusal(Alert::bad_certificate, std::string(500, 'y'), "cause");
    EXPECT_EQ(refusal.reason.size(), Refusal::kMaxReasonBytes);
    EXPECT_EQ(refusal.error.code(), Errc::unauthenticated);
}

}  // namespace
}  // namespace nexar::security
