#include "wire/preamble.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "samples.hpp"

namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::from_hex;
using ::testing::HasSubstr;

constexpr Preamble kBulk{.lane = Lane::bulk,
                         .context = ContextId(0x0102030405060708),
                         .sequence = Sequence(0x1112131415161718)};

constexpr Preamble kCollective{.lane = Lane::collective,
                               .context = ContextId(0x3132333435363738),
                               .sequence = Sequence(0x4142434445464748)};

constexpr Preamble kCall{
    .lane = Lane::call, .call = CallId(0x2122232425262728), .part = CallPart::response};

Bytes bytes_of(const Preamble& preamble) {
    Bytes bytes(encoded_size(preamble));
    const auto written = encode(preamble, std::span<std::byte>(bytes));
    EXPECT_TRUE(written && *written == bytes.size());
    return bytes;
}

Preamble random_preamble(testing::Random& random) {
    constexpr std::array kLanes{Lane::control, Lane::rpc,  Lane::eager,      Lane::bulk,
                                Lane::call,    Lane::seed, Lane::collective, Lane::continued};
    Preamble preamble{.lane = kLanes[random.below(kLanes.size())]};
    if (preamble.lane == Lane::bulk || preamble.lane == Lane::collective) {
        preamble.context = ContextId(random.number(0, ~0ULL));
        preamble.sequence = Sequence(random.number(0, ~0ULL));
    }
    if (preamble.lane == Lane::call) {
        preamble.call = CallId(random.number(0, ~0ULL));
        preamble.part = random.coin() ? CallPart::request : CallPart::response;
    }
    if (preamble.lane == Lane::continued) {
        preamble.continues = static_cast<ContinuedLane>(random.number(1, 3));
        preamble.position = random.number(0, ~0ULL);
    }
    if (names_content(preamble.lane)) {
        preamble.attempt = static_cast<std::uint16_t>(random.number(0, 0xffff));
    }
    return preamble;
}

TEST(Preamble, survives_the_round_trip) {
    testing::Random random;
    for (int i = 0; i < 10'000; ++i) {
        const Preamble preamble = random_preamble(random);
        const auto decoded = decode_preamble(bytes_of(preamble));
        ASSERT_TRUE(decoded) << decoded.error().what();
        ASSERT_EQ(*decoded, preamble);
    }
}

TEST(Preamble, names_its_message_on_a_bulk_or_collective_lane_only) {
    EXPECT_EQ(bytes_of({.lane = Lane::eager}).size(), kPreambleBytes);
    EXPECT_EQ(bytes_of(kBulk).size(), kBulkPreambleBytes);
    EXPECT_EQ(bytes_of(kCollective).size(), kBulkPreambleBytes);
    Bytes room(64);
    Preamble wrong = kBulk;
    wrong.lane = Lane::control;
    const auto written = encode(wrong, std::span<std::byte>(room));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), Errc::invalid_argument);
    wrong.context = ContextId(0);
    EXPECT_THAT(encode(wrong, std::span<std::byte>(room)).error().cause(), HasSubstr("sequence"));
    EXPECT_FALSE(encode(Preamble{.lane = static_cast<Lane>(0)}, std::span<std::byte>(room)));
    EXPECT_FALSE(encode(Preamble{.lane = static_cast<Lane>(10)}, std::span<std::byte>(room)));
}

TEST(Preamble, opens_a_seed_lane_and_never_a_file) {
    EXPECT_EQ(bytes_of({.lane = Lane::seed}), from_hex("8e 6e 78 72 01 06 00 00"));
    EXPECT_EQ(decode_preamble(from_hex("8e 6e 78 72 01 06 00 00")).value(),
              Preamble{.lane = Lane::seed});
    Bytes room(64, std::byte{0xaa});
    const auto written = encode(Preamble{.lane = Lane::file}, std::span<std::byte>(room));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), Errc::invalid_argument);
    EXPECT_EQ(room, Bytes(64, std::byte{0xaa}));
    for (const Bytes& bytes :
         {from_hex("8e 6e 78 72 01 07 00 00"),
          from_hex("8e 6e 78 72 01 07 00 00 01 02 03 04 05 06 07 08 01 02 03 04 05 06 07 08")}) {
        EXPECT_EQ(preamble_size(bytes).error().code(), Errc::malformed);
        const auto decoded = decode_preamble(bytes);
        ASSERT_FALSE(decoded);
        EXPECT_EQ(decoded.error().code(), Errc::malformed);
        EXPECT_THAT(decoded.error().cause(), HasSubstr("lane is 7"));
    }
}

TEST(Preamble, of_a_collective_differs_from_that_of_a_bulk_message_in_the_lane_only) {
    EXPECT_EQ(bytes_of(kCollective),
              from_hex("8e 6e 78 72 01 08 00 00 38 37 36 35 34 33 32 31 48 47 46 45 44 43 42 41"));
    Preamble bulk = kCollective;
    bulk.lane = Lane::bulk;
    Bytes bytes = bytes_of(bulk);
    bytes[5] = std::byte{8};
    EXPECT_EQ(bytes, bytes_of(kCollective));
    EXPECT_EQ(*preamble_size(std::span(bytes).first(kPreambleBytes)), kBulkPreambleBytes);
}

TEST(Preamble, names_its_call_on_a_call_lane_only) {
    EXPECT_EQ(bytes_of(kCall).size(), kBulkPreambleBytes);
    Bytes room(64);
    Preamble wrong = kCall;
    wrong.part = CallPart::none;
    EXPECT_THAT(encode(wrong, std::span<std::byte>(room)).error().cause(), HasSubstr("part"));
    wrong = {.lane = Lane::rpc, .call = CallId(1)};
    EXPECT_THAT(encode(wrong, std::span<std::byte>(room)).error().cause(), HasSubstr("call"));
    wrong = {.lane = Lane::rpc, .part = CallPart::request};
    EXPECT_THAT(encode(wrong, std::span<std::byte>(room)).error().cause(), HasSubstr("part"));
    Bytes bytes = bytes_of(kCall);
    bytes[16] = std::byte{3};
    EXPECT_THAT(decode_preamble(bytes).error().cause(), HasSubstr("part is 3"));
}

TEST(Preamble, does_not_encode_into_a_buffer_that_is_too_small) {
    Bytes room(kBulkPreambleBytes - 1);
    EXPECT_EQ(encode(kBulk, std::span<std::byte>(room)).error().cause(),
              "cannot encode preamble: it takes 24 bytes, but the buffer has 23");
}

TEST(Preamble, is_rejected_if_truncated_or_too_long) {
    for (const Preamble& preamble : {Preamble{}, kBulk, kCall, kCollective}) {
        Bytes bytes = bytes_of(preamble);
        for (std::size_t n = 0; n < bytes.size(); ++n) {
            const auto decoded = decode_preamble(std::span(bytes).first(n));
            ASSERT_FALSE(decoded) << n;
            EXPECT_EQ(decoded.error().code(), Errc::malformed);
            EXPECT_THAT(decoded.error().cause(), HasSubstr("the input ends inside"));
        }
        bytes.push_back(std::byte{0});
        EXPECT_EQ(decode_preamble(bytes).error().code(), Errc::malformed);
    }
}

TEST(Preamble, is_canonical_under_every_change_of_one_byte) {
    for (const Preamble& preamble : {Preamble{}, Preamble{.lane = Lane::rpc},
                                     Preamble{.lane = Lane::seed}, kBulk, kCollective}) {
        const Bytes original = bytes_of(preamble);
        for (std::size_t at = 0; at < original.size(); ++at) {
            for (unsigned change = 1; change < 256; ++change) {
                Bytes bytes = original;
                bytes[at] ^= static_cast<std::byte>(change);
                const auto decoded = decode_preamble(bytes);
                EXPECT_TRUE(decoded || at < kPreambleBytes);
                if (decoded) {
                    ASSERT_EQ(bytes_of(*decoded), bytes);
                }
            }
        }
    }
}

TEST(Preamble, errors_say_what_is_wrong) {
    const auto error = [](const char* hex) { return decode_preamble(from_hex(hex)).error(); };
    EXPECT_THAT(error("47 45 54 20 2f 20 48 54").cause(), HasSubstr("magic is 0x20544547"));
    EXPECT_EQ(error("47 45 54 20 2f 20 48 54").code(), Errc::malformed);
    EXPECT_EQ(error("8e 6e 78 72 02 01 00 00").code(), Errc::version_mismatch);
    EXPECT_THAT(error("8e 6e 78 72 01 0a 00 00").cause(), HasSubstr("lane is 10"));
    EXPECT_THAT(error("8e 6e 78 72 01 07 00 00").cause(), HasSubstr("on a stream"));
    EXPECT_THAT(error("8e 6e 78 72 01 00 00 00").cause(), HasSubstr("lane is 0"));
    EXPECT_THAT(error("8e 6e 78 72 01 01 00 01").cause(), HasSubstr("attempt is 256"));
}

TEST(PreambleSize, distinguishes_an_incomplete_preamble_from_a_bad_one) {
    const Bytes bulk = bytes_of(kBulk);
    for (std::size_t n = 0; n < kPreambleBytes; ++n) {
        EXPECT_EQ(*preamble_size(std::span(bulk).first(n)), kPreambleBytes);
    }
    for (std::size_t n = kPreambleBytes; n <= bulk.size(); ++n) {
        EXPECT_EQ(*preamble_size(std::span(bulk).first(n)), kBulkPreambleBytes);
    }
    EXPECT_EQ(*preamble_size(bytes_of({.lane = Lane::eager})), kPreambleBytes);
    EXPECT_EQ(preamble_size(from_hex("8e 6e 78 73 01 01 00 00")).error().code(), Errc::malformed);
    EXPECT_EQ(preamble_size(from_hex("8e 6e 78 72 07 01 00 00")).error().code(),
              Errc::version_mismatch);
}

TEST(Lane, has_a_name) {
    EXPECT_EQ(name(Lane::control), "control");
    EXPECT_EQ(name(Lane::rpc), "rpc");
    EXPECT_EQ(name(Lane::eager), "eager");
    EXPECT_EQ(name(Lane::bulk), "bulk");
    EXPECT_EQ(name(Lane::call), "call");
    EXPECT_EQ(name(Lane::seed), "seed");
    EXPECT_EQ(name(Lane::file), "file");
    EXPECT_EQ(name(static_cast<Lane>(0)), "unknown");
    EXPECT_EQ(name(Lane::collective), "collective");
    EXPECT_EQ(name(Lane::continued), "continued");
    EXPECT_EQ(name(static_cast<Lane>(10)), "unknown");
}

}  // namespace
}  // namespace nexar::wire
