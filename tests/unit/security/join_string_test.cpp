#include "security/join_string.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gnutls/crypto.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace nexar::security {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// Another program computed the check.
constexpr std::string_view kKnown =
    "nexar1.101112131415161718191a1b1c1d1e1f."
    "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf."
    "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f.645893bd@10.0.0.7:7400";

template <std::size_t N>
std::array<std::byte, N> counted(unsigned first) {
    std::array<std::byte, N> made{};
    for (std::size_t i = 0; i < N; ++i) made[i] = static_cast<std::byte>(first + i);
    return made;
}

std::string hex(unsigned first, std::size_t n) {
    std::string digits;
    for (unsigned i = 0; i < n; ++i) digits += fmt::format("{:02x}", first + i);
    return digits;
}

JoinString with_seeds(const std::vector<std::string>& seeds) {
    JoinString made;
    made.token = TokenId(counted<16>(0x10));
    made.secret = Secret(counted<32>(0xa0));
    made.ca = counted<32>(0x40);
    made.seeds = seeds;
    return made;
}

/// Inserts the correct check after `front`, which ends with a dot.
std::string checked(const std::string& front, const std::string& seeds) {
    const std::string all = front + "@" + seeds;
    std::array<unsigned char, 32> digest{};
    EXPECT_EQ(gnutls_hash_fast(GNUTLS_DIG_SHA256, all.data(), all.size(), digest.data()), 0);
    return fmt::format("{}{:02x}{:02x}{:02x}{:02x}@{}", front, digest[0], digest[1], digest[2],
                       digest[3], seeds);
}

std::string checked_parts(const std::string& token, const std::string& secret,
                          const std::string& ca, const std::string& seeds = "seed:7400") {
    return checked("nexar1." + token + "." + secret + "." + ca + ".", seeds);
}

/// Expects an error that reveals nothing of the secret, the token, the CA or the seeds.
void expect_refused(const std::string& text, const std::string& words = "") {
    const auto parsed = JoinString::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Errc::bad_config);
    const std::string said = parsed.error().what();
    EXPECT_THAT(said, HasSubstr(words));
    EXPECT_THAT(said, HasSubstr("`nexar token create`"));
    for (std::size_t at = 7; at + 4 <= text.size(); ++at) {
        ASSERT_THAT(said, Not(HasSubstr(text.substr(at, 4)))) << text;
    }
}

TEST(JoinString, has_exactly_one_form) {
    EXPECT_EQ(with_seeds({"10.0.0.7:7400"}).text(), kKnown);
    EXPECT_EQ(checked_parts(hex(0x10, 16), hex(0xa0, 32), hex(0x40, 32), "10.0.0.7:7400"), kKnown);
}

TEST(JoinString, survives_a_round_trip) {
    const std::vector<std::vector<std::string>> lists{
        {"10.0.0.7:7400"},
        {"[fd00::7]:7400"},
        {"[::ffff:10.0.0.7]:1"},
        {"seed:65535"},
        {"seed-0.nexar_system.svc.cluster.local:7400"},
        {"10.0.0.7:7400", "[fd00::7]:7400", "seed.example:7400"},
        {"a:1", "b:2", "c:3", "d:4", "e:5", "f:6", "g:7", "h:8"},
        {std::string(253, 'x') + ":7400"}};
    for (const auto& seeds : lists) {
        const JoinString original = with_seeds(seeds);
        const auto parsed = JoinString::parse(original.text());
        ASSERT_TRUE(parsed) << original.text() << ": " << parsed.error().what();
        EXPECT_EQ(parsed->token, original.token);
        EXPECT_TRUE(parsed->secret == original.secret);
        EXPECT_EQ(parsed->ca, original.ca);
        EXPECT_EQ(parsed->seeds, seeds);
        EXPECT_EQ(parsed->text(), original.text());
    }
}

TEST(JoinString, is_refused_if_any_character_changes) {
    for (std::size_t at = 0; at < kKnown.size(); ++at) {
        for (unsigned change = 1; change < 256; ++change) {
            std::string text(kKnown);
            text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ change);
            ASSERT_FALSE(JoinString::parse(text)) << at << ": " << text;
        }
    }
}

TEST(JoinString, is_refused_with_an_extra_or_a_missing_character) {
    for (std::size_t at = 0; at <= kKnown.size(); ++at) {
        for (const char more : {'0', 'f', '.', '@', ',', ' ', '\n'}) {
            std::string text(kKnown);
            text.insert(at, 1, more);
            ASSERT_FALSE(JoinString::parse(text)) << at << ": " << text;
        }
        if (at == kKnown.size()) break;
        std::string text(kKnown);
        text.erase(at, 1);
        ASSERT_FALSE(JoinString::parse(text)) << at << ": " << text;
    }
}

TEST(JoinString, is_refused_if_truncated_anywhere) {
    for (std::size_t at = 0; at < kKnown.size(); ++at) {
        expect_refused(std::string(kKnown.substr(0, at)));
        if (at > 0) {
            EXPECT_FALSE(JoinString::parse(kKnown.substr(at)));
        }
    }
}

TEST(JoinString, says_what_is_wrong_without_quoting_the_text) {
    expect_refused("", "no @");
    expect_refused("c0ffee", "no @");
    expect_refused("nexar2" + std::string(kKnown.substr(6)), "does not begin with nexar1");
    expect_refused(std::string(kKnown.substr(0, 39)) + "@203.0.113.9:4711", "four parts");
    std::string mistyped(kKnown);
    mistyped[50] = 'f';
    expect_refused(mistyped, "changed or truncated");
    expect_refused(std::string(kKnown) + ",203.0.113.9:4711", "changed or truncated");
    expect_refused(std::string(JoinString::kMaxBytes + 1, 'z'), "too long");
}

TEST(JoinString, requires_lower_case_parts_of_the_right_length_even_if_the_check_is_right) {
    const std::string token = hex(0x10, 16);
    const std::string secret = hex(0xa0, 32);
    const std::string ca = hex(0x40, 32);
    ASSERT_TRUE(JoinString::parse(checked_parts(token, secret, ca)));
    std::string upper_token = token;
    upper_token.back() = 'F';
    std::string upper_secret = secret;
    upper_secret.back() = 'F';
    std::string upper_ca = ca;
    upper_ca.back() = 'F';
    for (const std::string& text :
         {checked_parts(upper_token, secret, ca), checked_parts(token, upper_secret, ca),
          checked_parts(token, secret, upper_ca), checked_parts("", secret, ca),
          checked_parts(token, "", ca), checked_parts(token, secret, ""),
          checked_parts(token + "00", secret, ca), checked_parts(token, secret + "00", ca),
          checked_parts(token, secret.substr(2), ca), checked_parts(token, secret, ca + "00"),
          checked_parts(token, secret, ca.substr(1)),
          checked_parts(token, "g" + secret.substr(1), ca)}) {
        expect_refused(text, "one of its parts is malformed");
    }
    expect_refused(checked("nexar1." + token + "." + secret + "." + ca + ".00.", "seed:7400"),
                   "four parts");
}

TEST(JoinString, names_one_to_eight_seeds) {
    const auto with = [](const std::string& seeds) {
        return checked_parts(hex(0x10, 16), hex(0xa0, 32), hex(0x40, 32), seeds);
    };
    EXPECT_TRUE(JoinString::parse(with("a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1")));
    expect_refused(with("a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1"), "too many seeds");
    for (const std::string& seeds :
         {""s, ","s, "a:1,"s, ",a:1"s, "a:1,,b:1"s, "a"s, "a:0"s, "a:65536"s, "a b:1"s, "a:1@b:1"s,
          "[::1]"s, "::1:7400"s, "[::1\0x]:1"s, "a\0:1"s, "a:1\n"s, " a:1"s}) {
        SCOPED_TRACE(seeds);
        EXPECT_THAT(JoinString::parse(with(seeds)).error().what(), HasSubstr("list of seeds"));
    }
}

TEST(JoinString, has_a_maximum_length) {
    const std::size_t around = with_seeds({":1"}).text().size();
    const auto of_size = [&](std::size_t n) {
        const std::string third(250, 'x');
        const std::string rest(n - around - 3 * 253, 'y');
        return with_seeds({third + ":1", third + ":1", third + ":1", rest + ":1"}).text();
    };
    EXPECT_EQ(of_size(1024).size(), 1024U);
    EXPECT_TRUE(JoinString::parse(of_size(1024)));
    EXPECT_THAT(JoinString::parse(of_size(1025)).error().what(), HasSubstr("too long"));
}

TEST(HostPort, is_split_into_host_and_port) {
    const auto expect = [](std::string_view text, std::string_view host, unsigned port) {
        const auto parsed = HostPort::parse(text);
        ASSERT_TRUE(parsed) << parsed.error().what();
        EXPECT_EQ(parsed->host, host);
        EXPECT_EQ(parsed->port, port);
    };
    expect("10.0.0.7:7400", "10.0.0.7", 7400);
    expect("[fd00::7]:7400", "fd00::7", 7400);
    expect("[::]:1", "::", 1);
    expect("seed-0.example_x.org:65535", "seed-0.example_x.org", 65535);
}

TEST(HostPort, is_quoted_in_the_error_if_invalid) {
    for (const std::string& text :
         {""s,           ":"s,          ":7400"s,        "seed"s,     "seed:"s,   "seed:0"s,
          "seed:65536"s, "seed:-1"s,    "seed:+1"s,      "seed:1x"s,  "seed: 1"s, "[fd00::7]"s,
          "[fd00::7:1"s, "fd00::7]:1"s, "fd00::7:7400"s, "[seed]:1"s, "[]:1"s,    "[10.0.0.7]:1"s,
          "se/ed:1"s,    "se ed:1"s,    "s\xc3\xa9:1"s}) {
        const auto parsed = HostPort::parse(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code(), Errc::invalid_argument);
        EXPECT_THAT(parsed.error().what(), HasSubstr("\"" + text + "\""));
        EXPECT_THAT(parsed.error().what(), HasSubstr("allowed: 10.0.0.7:7400"));
    }
    EXPECT_FALSE(HostPort::parse("[::1\0x]:1"s));
    EXPECT_TRUE(HostPort::parse(std::string(253, 'x') + ":1"));
    EXPECT_FALSE(HostPort::parse(std::string(254, 'x') + ":1"));
}

}  // namespace
}  // namespace nexar::security
