#include "wire/frame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>

#include "samples.hpp"

namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::from_hex;
using ::testing::HasSubstr;

TEST(FrameHeader, is_decoded_from_the_first_eight_bytes_only) {
    const auto header = decode_frame_header(from_hex("01 03 20 00 35 00 00 00 ff ff ff"));
    ASSERT_TRUE(header);
    EXPECT_EQ(*header, (FrameHeader{FrameType::error_report, 0x20, 0x35}));
}

TEST(FrameHeader, of_another_version_is_a_version_mismatch_even_if_all_else_is_unknown) {
    for (const char* hex : {"02 01 00 00 00 00 00 00", "00 ff ff ff ff ff ff ff"}) {
        const auto header = decode_frame_header(from_hex(hex));
        ASSERT_FALSE(header);
        EXPECT_EQ(header.error().code(), Errc::version_mismatch);
        EXPECT_THAT(header.error().cause(), HasSubstr("this build speaks 1"));
    }
}

TEST(FrameHeader, of_an_unknown_type_is_rejected_with_its_number) {
    std::set<unsigned> known;
    for (const FrameRules& rules : kFrameRules) known.insert(static_cast<unsigned>(rules.type));
    EXPECT_EQ(known.size(), kFrameRules.size());
    for (unsigned type = 0; type < 256; ++type) {
        const auto header = decode_frame_header(testing::frame(static_cast<FrameType>(type), {}));
        ASSERT_EQ(header.has_value(), known.contains(type)) << type;
        if (header) continue;
        EXPECT_EQ(header.error().code(), Errc::unsupported);
        EXPECT_THAT(header.error().cause(),
                    HasSubstr("type " + std::to_string(type) + " is unknown"));
        EXPECT_THAT(header.error().cause(), HasSubstr("17 bulk"));
    }
}

TEST(FrameHeader, may_announce_a_body_up_to_the_limit_of_its_type) {
    for (const FrameRules& rules : kFrameRules) {
        Bytes bytes = testing::frame(rules.type, Bytes(rules.max_body_bytes));
        const auto header = decode_frame_header(bytes);
        ASSERT_TRUE(header) << rules.name;
        EXPECT_EQ(header->body_bytes, rules.max_body_bytes);

        for (const std::uint32_t size : {rules.max_body_bytes + 1, 0xffffffffU}) {
            for (unsigned i = 0; i < 4; ++i) bytes[4 + i] = static_cast<std::byte>(size >> (8 * i));
            const auto refused = decode_frame_header(bytes);
            ASSERT_FALSE(refused) << rules.name;
            EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
            EXPECT_THAT(refused.error().cause(),
                        HasSubstr("the body of " + std::string(rules.name) + " has " +
                                  std::to_string(size) + " bytes; the limit is " +
                                  std::to_string(rules.max_body_bytes)));
        }
    }
}

TEST(FrameHeader, may_not_have_more_optional_fields_than_body) {
    EXPECT_TRUE(decode_frame_header(from_hex("01 04 04 00 04 00 00 00")));
    const auto refused = decode_frame_header(from_hex("01 04 05 00 04 00 00 00"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::malformed);
}

// Works like a stream reader: calls frame_size() until it has all bytes.
std::optional<Bytes> read_frame(std::span<const std::byte> stream) {
    for (std::size_t have = 0;;) {
        const auto size = frame_size(stream.first(have));
        if (!size) return std::nullopt;
        if (*size <= have) return Bytes(stream.begin(), stream.begin() + static_cast<int>(*size));
        if (*size > stream.size()) return std::nullopt;
        ++have;
    }
}

TEST(FrameSize, distinguishes_an_incomplete_frame_from_a_bad_one) {
    const Bytes first = testing::encoded(testing::example<Hello>());
    Bytes stream = first;
    const Bytes second = testing::encoded(testing::example<Credit>());
    stream.insert(stream.end(), second.begin(), second.end());

    EXPECT_EQ(*frame_size({}), kFrameHeaderBytes);
    EXPECT_EQ(*frame_size(std::span(first).first(7)), kFrameHeaderBytes);
    EXPECT_EQ(*frame_size(std::span(first).first(8)), first.size());
    EXPECT_EQ(read_frame(stream), first);
    EXPECT_EQ(read_frame(std::span(stream).subspan(first.size())), second);

    stream[1] = std::byte{99};
    EXPECT_EQ(*frame_size(std::span(stream).first(7)), kFrameHeaderBytes);
    EXPECT_EQ(frame_size(stream).error().code(), Errc::unsupported);
}

TEST(FrameType, belongs_on_the_lane_of_its_rules) {
    EXPECT_TRUE(belongs_on(Lane::control, FrameType::hello));
    EXPECT_FALSE(belongs_on(Lane::eager, FrameType::hello));
    EXPECT_TRUE(belongs_on(Lane::eager, FrameType::bulk));
    EXPECT_FALSE(belongs_on(Lane::bulk, FrameType::bulk)) << "a bulk lane carries payload only";
    EXPECT_FALSE(belongs_on(Lane::control, static_cast<FrameType>(99)));
    EXPECT_TRUE(belongs_in_datagram(FrameType::heartbeat));
    EXPECT_FALSE(belongs_in_datagram(FrameType::eager)) << "datagrams may be lost";
    EXPECT_FALSE(belongs_in_datagram(static_cast<FrameType>(99)));
}

TEST(FrameType, of_a_greeting_report_or_agreement_belongs_on_the_control_and_seed_lanes) {
    constexpr std::array kLanes{Lane::control, Lane::rpc,  Lane::eager, Lane::bulk,
                                Lane::call,    Lane::seed, Lane::file,  Lane::collective};
    for (const FrameRules& rules : kFrameRules) {
        const bool greets = rules.type == FrameType::hello || rules.type == FrameType::welcome ||
                            rules.type == FrameType::error_report || rules.type == FrameType::abort;
        const bool agrees = rules.type == FrameType::suspicion || rules.type == FrameType::ballot ||
                            rules.type == FrameType::view;
        for (const Lane lane : kLanes) {
            const bool moves =
                rules.type == FrameType::moved && (lane == Lane::rpc || lane == Lane::eager);
            const bool both = lane == Lane::control || lane == Lane::seed;
            EXPECT_EQ(belongs_on(lane, rules.type),
                      lane == rules.lane || ((greets || agrees) && both) || moves)
                << rules.name << " on " << name(lane);
        }
    }
    EXPECT_FALSE(belongs_on(Lane::seed, static_cast<FrameType>(0)))
        << "0 is below the first greeting";
}

TEST(FrameType, of_the_seed_lane_belongs_on_no_other) {
    for (const FrameType type :
         {FrameType::proof, FrameType::join_request, FrameType::admission, FrameType::formation,
          FrameType::renewal, FrameType::link_report}) {
        EXPECT_TRUE(belongs_on(Lane::seed, type));
        EXPECT_FALSE(belongs_on(Lane::control, type)) << "only a seed admits nodes";
        EXPECT_FALSE(belongs_on(Lane::file, type));
        EXPECT_FALSE(belongs_in_datagram(type));
    }
    EXPECT_FALSE(belongs_on(Lane::seed, FrameType::heartbeat));
    EXPECT_FALSE(belongs_on(Lane::seed, FrameType::credit));
}

TEST(FrameType, of_membership_belongs_on_the_lanes_of_members_and_seeds) {
    for (const FrameType type : {FrameType::suspicion, FrameType::ballot, FrameType::view}) {
        EXPECT_TRUE(belongs_on(Lane::control, type)) << name(type);
        EXPECT_TRUE(belongs_on(Lane::seed, type)) << name(type);
        for (const Lane lane : {Lane::rpc, Lane::eager, Lane::bulk, Lane::call, Lane::file}) {
            EXPECT_FALSE(belongs_on(lane, type)) << name(type) << " on " << name(lane);
        }
        EXPECT_FALSE(belongs_in_datagram(type)) << name(type) << ": datagrams may be lost";
    }
    EXPECT_TRUE(belongs_on(Lane::control, FrameType::revoke));
    EXPECT_FALSE(belongs_on(Lane::seed, FrameType::revoke)) << "a seed has no communicator";
    EXPECT_EQ(static_cast<unsigned>(FrameType::suspicion), 80U);
    EXPECT_EQ(static_cast<unsigned>(FrameType::ballot), 81U);
    EXPECT_EQ(static_cast<unsigned>(FrameType::revoke), 82U);
}

TEST(FrameType, of_a_file_belongs_on_no_stream) {
    for (const FrameType type : {FrameType::stored_tokens, FrameType::stored_seed}) {
        EXPECT_TRUE(belongs_on(Lane::file, type));
        for (const Lane lane :
             {Lane::control, Lane::rpc, Lane::eager, Lane::bulk, Lane::seed, Lane::collective}) {
            EXPECT_FALSE(belongs_on(lane, type)) << name(lane);
        }
        EXPECT_FALSE(belongs_in_datagram(type));
    }
    EXPECT_FALSE(belongs_on(Lane::file, FrameType::hello));
}

TEST(FrameType, has_a_name) {
    EXPECT_EQ(name(FrameType::error_report), "error_report");
    EXPECT_EQ(name(static_cast<FrameType>(99)), "unknown");
}

}  // namespace
}  // namespace nexar::wire
