#include "wire/describe.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "describe_checks.hpp"

/// The limits and rules of each field.
namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::changed;
using testing::encoded;
using testing::example;
using testing::expect_accepted;
using testing::expect_not_encoded;
using testing::expect_refused;
using testing::letters;
using testing::patched;

constexpr std::uint64_t kMaxTime = 0x7fffffffffffffff;

TEST(EagerHeader, limits_its_payload) {
    const auto m = example<EagerHeader>();
    expect_accepted(patched(m, 24, 0, 8));
    expect_accepted(patched(m, 24, kMaxEagerBytes, 8));
    expect_refused(patched(m, 24, kMaxEagerBytes + 1, 8), Errc::limit_exceeded,
                   "eager: size is 65537; it must be at most 65536");
    expect_not_encoded(changed<EagerHeader>([](auto& x) { x.size = kMaxEagerBytes + 1; }),
                       "cannot encode eager: size is 65537; it must be at most 65536");
}

TEST(EagerHeader, never_awaits_a_grant) {
    expect_refused(patched(example<EagerHeader>(), 32, 1, 1), Errc::malformed,
                   "eager: awaits_grant is 1; it must be 0");
    expect_not_encoded(changed<EagerHeader>([](auto& x) { x.awaits_grant = true; }),
                       "awaits_grant");
}

TEST(BulkHeader, limits_its_payload) {
    const auto m = example<BulkHeader>();
    expect_accepted(patched(m, 24, 1, 8));
    expect_accepted(patched(m, 24, kMaxByteCount, 8));
    expect_refused(patched(m, 24, 0, 8), Errc::malformed, "bulk: size is 0; it must be at least 1");
    expect_refused(patched(m, 24, kMaxByteCount + 1, 8), Errc::limit_exceeded, "bulk: size is");
    expect_not_encoded(changed<BulkHeader>([](auto& x) { x.size = 0; }), "size is 0");
}

TEST(BulkHeader, rejects_unknown_flags_and_codecs) {
    const auto m = example<BulkHeader>();
    for (unsigned flags = 0; flags <= 7; ++flags) expect_accepted(patched(m, 32, flags, 1));
    expect_refused(patched(m, 32, 8, 1), Errc::malformed,
                   "bulk: flags is 0x8; the known bits are 0x7");
    expect_refused(patched(m, 33, 1, 1), Errc::unsupported,
                   "bulk: codec is 1, which this build does not know");
    expect_not_encoded(changed<BulkHeader>([](auto& x) { x.codec = static_cast<PayloadCodec>(1); }),
                       "codec is 1");
}

TEST(Hello, requires_a_valid_range_of_versions) {
    const auto m = example<Hello>();
    expect_accepted(patched(m, 1, 255, 1));
    expect_refused(patched(m, 0, 0, 1), Errc::malformed, "hello: min_version is 0");
    expect_refused(patched(m, 1, 0, 1), Errc::malformed, "hello: max_version is 0");
    expect_refused(patched(m, 0, 2, 1), Errc::malformed,
                   "hello: min_version is 2; it must be at most max_version");
    expect_not_encoded(changed<Hello>([](auto& x) { x.min_version = 2; }), "min_version");
}

TEST(Hello, bounds_the_name_of_the_software) {
    expect_accepted(encoded(changed<Hello>([](auto& x) { x.software = letters(128); })));
    expect_accepted(encoded(changed<Hello>([](auto& x) { x.software = ""; })));
    expect_refused(patched(example<Hello>(), 18, 129, 2), Errc::limit_exceeded,
                   "hello: software has 129 bytes; the limit is 128");
    expect_not_encoded(changed<Hello>([](auto& x) { x.software = letters(129); }),
                       "software has 129 bytes");
    expect_not_encoded(changed<Hello>([](auto& x) { x.software = letters(100'000); }),
                       "software has 100000 bytes");
}

TEST(Hello, accepts_only_printable_text) {
    expect_refused(patched(example<Hello>(), 25, '\n', 1), Errc::malformed,
                   "hello: software is invalid at byte 5; it must be UTF-8");
    expect_not_encoded(changed<Hello>([](auto& x) { x.software = "a\x1b[2J"; }),
                       "software is invalid at byte 1");
}

TEST(Welcome, requires_a_rank_below_the_world_size) {
    const auto m = example<Welcome>();
    expect_accepted(patched(m, 21, kMaxWorldSize, 4));
    expect_refused(patched(m, 17, 3, 4), Errc::malformed,
                   "welcome: rank is 3; it must be below world_size");
    expect_refused(patched(m, 21, 0, 4), Errc::malformed, "welcome: world_size is 0");
    expect_refused(patched(m, 21, kMaxWorldSize + 1, 4), Errc::limit_exceeded, "world_size");
    expect_not_encoded(changed<Welcome>([](auto& x) { x.rank = Rank(3); }), "rank is 3");
}

TEST(Welcome, bounds_version_and_credit) {
    const auto m = example<Welcome>();
    expect_refused(patched(m, 0, 0, 1), Errc::malformed, "welcome: version is 0");
    expect_accepted(patched(m, 25, kMaxByteCount, 8));
    expect_refused(patched(m, 25, kMaxByteCount + 1, 8), Errc::limit_exceeded,
                   "welcome: payload_credit_bytes is");
}

TEST(Welcome, bounds_each_setting) {
    const auto with = [](std::size_t name, std::size_t value, std::size_t origin = 0) {
        return changed<Welcome>(
            [&](auto& x) { x.settings = {{letters(name), letters(value), letters(origin)}}; });
    };
    expect_accepted(encoded(with(1, 0)));
    expect_accepted(encoded(with(64, 256, 256)));
    expect_refused(patched(with(64, 256), 39, 65, 2), Errc::limit_exceeded,
                   "welcome: name of a setting has 65 bytes; the limit is 64");
    expect_refused(patched(with(1, 256), 39, 0, 2), Errc::malformed,
                   "welcome: name of a setting is 0; it must be at least 1");
    expect_refused(patched(with(1, 256), 42, 257, 2), Errc::limit_exceeded,
                   "welcome: value of a setting has 257 bytes; the limit is 256");
    expect_refused(patched(with(1, 1, 256), 45, 257, 2), Errc::limit_exceeded,
                   "welcome: origin of a setting has 257 bytes; the limit is 256");
    expect_refused(patched(with(1, 1, 3), 48, '\n', 1), Errc::malformed,
                   "welcome: origin of a setting is invalid at byte 1");
    expect_not_encoded(with(65, 1), "name of a setting has 65 bytes");
    expect_not_encoded(with(0, 1), "name of a setting is 0");
    expect_not_encoded(with(1, 257), "value of a setting has 257 bytes");
    expect_not_encoded(with(1, 1, 257), "origin of a setting has 257 bytes");
}

/// `n` settings with names of `name_bytes`, and values and origins of `text_bytes`.
Welcome with_settings(std::size_t n, std::size_t name_bytes, std::size_t text_bytes) {
    return changed<Welcome>([&](auto& x) {
        x.settings.clear();
        for (std::size_t i = 0; i < n; ++i) {
            std::string name = letters(name_bytes);
            name[0] = static_cast<char>('a' + i / 26);
            name[1] = static_cast<char>('a' + i % 26);
            x.settings.push_back({name, letters(text_bytes), letters(text_bytes)});
        }
    });
}

TEST(Welcome, bounds_the_number_of_settings) {
    expect_accepted(encoded(with_settings(256, 2, 0)));
    expect_refused(patched(with_settings(256, 2, 0), 37, 257, 2), Errc::limit_exceeded,
                   "welcome: settings has 257 entries; the limit is 256");
    expect_refused(patched(example<Welcome>(), 37, 200, 2), Errc::malformed,
                   "welcome: the input ends inside settings: 60 left, 1200 needed");
    expect_not_encoded(with_settings(257, 2, 0), "settings has 257 entries");
}

TEST(Welcome, requires_settings_in_strict_order_of_name) {
    const auto named = [](const std::string& a, const std::string& b) {
        return changed<Welcome>([&](auto& x) { x.settings = {{a, "1", "x"}, {b, "2", "y"}}; });
    };
    expect_accepted(encoded(named("a", "aa")));
    expect_accepted(encoded(named("z", "\xc3\xa9")));  // compared as bytes, not as letters
    expect_not_encoded(named("b", "a"), "number of settings");
    expect_not_encoded(named("a", "a"), "number of settings");
    // The names "a", "b" become "b", "b" and then "c", "b".
    for (const char letter : {'b', 'c'}) {
        expect_refused(patched(named("a", "b"), 41, static_cast<unsigned char>(letter), 1),
                       Errc::malformed, "names must strictly ascend");
    }
}

TEST(ErrorReport, keeps_unknown_codes) {
    const auto decoded = decode_frame(patched(example<ErrorReport>(), 0, 54321, 2));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(static_cast<unsigned>(std::get<ErrorReport>(decoded->message).code), 54321U);
    expect_refused(patched(example<ErrorReport>(), 0, 0, 2), Errc::malformed,
                   "error_report: code is 0; it must be at least 1");
}

TEST(Abort, keeps_every_code) {
    for (const std::int32_t code : {0, 1, -1, std::numeric_limits<std::int32_t>::min(),
                                    std::numeric_limits<std::int32_t>::max()}) {
        const auto decoded = decode_frame(encoded(changed<Abort>([&](auto& x) { x.code = code; })));
        ASSERT_TRUE(decoded.has_value());
        EXPECT_EQ(std::get<Abort>(decoded->message).code, code);
    }
}

TEST(Abort, bounds_its_text) {
    expect_accepted(encoded(changed<Abort>([](auto& x) { x.text = letters(1024); })));
    expect_refused(patched(example<Abort>(), 8, 1025, 2), Errc::limit_exceeded,
                   "abort: text has 1025 bytes; the limit is 1024");
    expect_not_encoded(changed<Abort>([](auto& x) { x.text = letters(1025); }),
                       "text has 1025 bytes; the limit is 1024");
}

TEST(Abort, rejects_unprintable_text) {
    expect_refused(patched(example<Abort>(), 10, 0x1b, 1), Errc::malformed,
                   "abort: text is invalid at byte 0; it must be UTF-8 without control characters");
}

TEST(ErrorReport, bounds_its_text) {
    expect_accepted(encoded(changed<ErrorReport>([](auto& x) { x.text = letters(1024); })));
    expect_refused(patched(example<ErrorReport>(), 10, 1025, 2), Errc::limit_exceeded,
                   "error_report: text has 1025 bytes; the limit is 1024");
    expect_not_encoded(changed<ErrorReport>([](auto& x) { x.text = letters(1025); }),
                       "text has 1025 bytes");
}

TEST(Heartbeat, rejects_negative_times) {
    for (const std::size_t offset : {16U, 24U, 32U}) {
        expect_accepted(patched(example<Heartbeat>(), offset, kMaxTime, 8));
        expect_refused(patched(example<Heartbeat>(), offset, kMaxTime + 1, 8), Errc::limit_exceeded,
                       "heartbeat: ");
    }
    expect_not_encoded(
        changed<Heartbeat>([](auto& x) { x.sent_at = std::chrono::nanoseconds(-1); }), "sent_at");
}

TEST(Heartbeat, wants_answer_is_a_boolean) {
    const auto m = example<Heartbeat>();
    expect_accepted(patched(m, 48, 0, 1));
    expect_refused(patched(m, 48, 2, 1), Errc::limit_exceeded,
                   "heartbeat: wants_answer is 2; it must be at most 1");
    expect_accepted(patched(m, 40, ~std::uint64_t{0}, 8));
    EXPECT_FALSE(Heartbeat{}.wants_answer);
}

TEST(Credit, names_no_context_for_the_shared_pool) {
    const auto m = example<Credit>();
    const auto shared = static_cast<std::uint64_t>(CreditPool::shared);
    expect_refused(patched(m, 0, shared, 1), Errc::malformed, "credit: context is");
    expect_not_encoded(changed<Credit>([](auto& x) { x.pool = CreditPool::shared; }), "context is");
    expect_accepted(encoded(changed<Credit>([](auto& x) {
        x.pool = CreditPool::shared;
        x.context = ContextId(0);
    })));
}

TEST(Credit, names_a_context_for_every_other_pool) {
    const auto m = example<Credit>();
    for (const CreditPool pool :
         {CreditPool::collective, CreditPool::communicator, CreditPool::collective_reserve}) {
        const auto with_pool = patched(m, 0, static_cast<std::uint64_t>(pool), 1);
        expect_accepted(with_pool);
        EXPECT_EQ(encoded(changed<Credit>([&](auto& x) { x.pool = pool; })), with_pool);
    }
    expect_refused(patched(m, 0, 0, 1), Errc::malformed, "credit: pool is 0");
    expect_refused(patched(m, 0, 5, 1), Errc::malformed, "credit: pool is 5");
}

TEST(Credit, requires_a_nonzero_amount) {
    const auto m = example<Credit>();
    expect_accepted(patched(m, 17, 0, 4));
    expect_accepted(patched(m, 9, 0, 8));
    expect_accepted(patched(m, 9, kMaxByteCount, 8));
    expect_refused(patched(m, 9, kMaxByteCount + 1, 8), Errc::limit_exceeded, "payload_bytes");
    const auto none = changed<Credit>([](auto& x) { x.headers = 0; });
    expect_refused(patched(none, 9, 0, 8), Errc::malformed,
                   "credit: payload_bytes is 0; it may be 0 only if headers is not");
    expect_not_encoded(changed<Credit>([](auto& x) { x.headers = 0, x.payload_bytes = 0; }),
                       "payload_bytes is 0");
}

TEST(Grant, bounds_window_and_link_bytes) {
    const auto m = example<Grant>();
    expect_accepted(patched(m, 16, kMaxByteCount, 8));
    expect_refused(patched(m, 16, kMaxByteCount + 1, 8), Errc::limit_exceeded, "window_bytes");
    const auto with = [](std::size_t n) {
        return changed<Grant>([&](auto& x) { x.link = Bytes(n, std::byte{7}); });
    };
    expect_accepted(encoded(with(0)));
    expect_accepted(encoded(with(256)));
    expect_refused(patched(m, 24, 257, 2), Errc::limit_exceeded,
                   "grant: link has 257 bytes; the limit is 256");
    expect_not_encoded(with(257), "link has 257 bytes");
}

TEST(Withdraw, rejects_unknown_steps) {
    const auto m = example<Withdraw>();
    for (unsigned step = 1; step <= 3; ++step) expect_accepted(patched(m, 16, step, 1));
    expect_refused(patched(m, 16, 0, 1), Errc::malformed, "withdraw: step is 0");
    expect_refused(patched(m, 16, 4, 1), Errc::malformed, "withdraw: step is 4");
}

TEST(ContextBegin, requires_a_rank_below_its_size) {
    const auto m = example<ContextBegin>();
    expect_accepted(patched(m, 44, kMaxWorldSize, 4));
    expect_refused(patched(m, 44, kMaxWorldSize + 1, 4), Errc::limit_exceeded, "size");
    expect_refused(patched(m, 44, 0, 4), Errc::malformed, "size");
    expect_refused(patched(m, 40, 4, 4), Errc::malformed,
                   "context_begin: rank is 4; it must be below size");
}

TEST(LargestValue, of_every_message_fits_the_frame_limit) {
    const auto body_of = [](const auto& message) { return encoded(message).size() - 8; };
    const auto limit = [](FrameType type) { return rules_of(type)->max_body_bytes; };
    auto hello = changed<Hello>([](auto& x) { x.software = letters(128); });
    auto report = changed<ErrorReport>([](auto& x) { x.text = letters(1024); });
    auto grant = changed<Grant>([](auto& x) { x.link.resize(256); });
    EXPECT_EQ(body_of(hello), 176U);
    EXPECT_LE(body_of(hello), limit(FrameType::hello));
    EXPECT_EQ(body_of(with_settings(256, 64, 256)), 149031U);
    EXPECT_LE(body_of(with_settings(256, 64, 256)), limit(FrameType::welcome));
    EXPECT_LE(body_of(report), limit(FrameType::error_report));
    EXPECT_LE(body_of(grant), limit(FrameType::grant));
    EXPECT_LE(body_of(example<Heartbeat>()), limit(FrameType::heartbeat));
    EXPECT_LE(body_of(example<Credit>()), limit(FrameType::credit));
    EXPECT_LE(body_of(example<EagerHeader>()), limit(FrameType::eager));
    EXPECT_LE(body_of(example<BulkHeader>()), limit(FrameType::bulk));
    EXPECT_EQ(limit(FrameType::hello) + kFrameHeaderBytes, 4096U);
}

}  // namespace
}  // namespace nexar::wire
