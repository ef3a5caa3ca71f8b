#include "wire/describe_seed.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "describe_checks.hpp"
#include "wire/membership_messages.hpp"

/// The limits and rules of the messages between a seed and joining nodes, and of a seed's files.
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

constexpr std::uint64_t kMaxSeedTime = 0x7fffffffffffffff;
constexpr const char* kWideAddress = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";

Bytes some_bytes(std::size_t n) {
    return Bytes(n, std::byte{0x5a});
}

JoinRequest with_addresses(const std::vector<std::string>& texts) {
    return changed<JoinRequest>([&](auto& x) {
        x.addresses.clear();
        for (const std::string& text : texts) x.addresses.push_back({text});
    });
}

/// The frame of a request with this one address, even if the encoder would reject it.
Bytes frame_with_address(const std::string& text) {
    Bytes body = encoded(with_addresses({}));
    body.erase(body.begin(), body.begin() + kFrameHeaderBytes);
    body.at(body.size() - 2) = std::byte{1};  // the count of addresses
    body.push_back(static_cast<std::byte>(text.size()));
    body.push_back(std::byte{0});
    for (const char c : text) body.push_back(static_cast<std::byte>(c));
    return testing::frame(FrameType::join_request, body);
}

TEST(AddressText, in_canonical_form_is_accepted) {
    for (const char* text : {"0.0.0.0:0", "10.0.0.7:7400", "255.255.255.255:65535", "[::]:0",
                             "[::1]:1", "[fd00::7]:7400", "[2001:db8::1:0:0:1]:9", kWideAddress}) {
        expect_accepted(frame_with_address(text));
        EXPECT_EQ(encoded(with_addresses({text})), frame_with_address(text));
    }
}

TEST(AddressText, in_another_form_is_rejected) {
    for (const char* text : {"10.0.0.7:07400",
                             "10.0.0.7:65536",
                             "10.0.0.7:",
                             "10.0.0.7",
                             "010.0.0.7:1",
                             "10.0.7:1",
                             "host:7400",
                             "[FD00::7]:7400",
                             "[fd00:0:0::7]:1",
                             "[0:0:0:0:0:0:0:1]:1",
                             "[::01]:1",
                             "::1:7400",
                             "[fe80::1%eth0]:1",
                             "[::1]",
                             " 10.0.0.7:1",
                             "10.0.0.7:1 ",
                             "[10.0.0.7]:1",
                             "[2001:db8:0:0:1::1]:9",
                             "[::ffff:10.0.0.7]:7400",
                             "[::ffff:a00:7]:7400"}) {
        SCOPED_TRACE(text);
        expect_not_encoded(with_addresses({text}), "the text must be an address and a port");
        expect_refused(frame_with_address(text), Errc::malformed,
                       "join_request: address length is " +
                           std::to_string(std::string(text).size()) +
                           "; the text must be an address and a port in canonical form");
    }
}

TEST(AddressText, is_bounded_and_never_empty_in_a_list) {
    expect_refused(patched(example<JoinRequest>(), 64, 57, 2), Errc::limit_exceeded,
                   "join_request: address has 57 bytes; the limit is 56");
    expect_not_encoded(with_addresses({letters(57)}), "address has 57 bytes");
    expect_not_encoded(with_addresses({letters(100'000)}), "address has 100000 bytes");
    expect_refused(frame_with_address(""), Errc::malformed,
                   "join_request: number of addresses is 1; none of them may be empty");
    expect_not_encoded(with_addresses({"10.0.0.7:7400", ""}), "none of them may be empty");
}

TEST(JoinRequest, bounds_each_field) {
    const auto m = example<JoinRequest>();
    expect_accepted(
        encoded(changed<JoinRequest>([](auto& x) { x.signing_request = some_bytes(1024); })));
    expect_refused(patched(m, 48, 1025, 2), Errc::limit_exceeded,
                   "join_request: signing_request has 1025 bytes; the limit is 1024");
    expect_not_encoded(changed<JoinRequest>([](auto& x) { x.signing_request = some_bytes(1025); }),
                       "signing_request has 1025 bytes");
    expect_accepted(encoded(changed<JoinRequest>([](auto& x) { x.host = letters(64); })));
    expect_refused(patched(m, 55, 65, 2), Errc::limit_exceeded,
                   "join_request: host has 65 bytes; the limit is 64");
    expect_not_encoded(changed<JoinRequest>([](auto& x) { x.host = letters(65); }),
                       "host has 65 bytes");
    expect_refused(patched(m, 57, '\x1b', 1), Errc::malformed,
                   "join_request: host is invalid at byte 0");
    expect_accepted(encoded(with_addresses(std::vector<std::string>(16, "10.0.0.7:1"))));
    expect_refused(patched(m, 62, 17, 2), Errc::limit_exceeded,
                   "join_request: addresses has 17 entries; the limit is 16");
    expect_not_encoded(with_addresses(std::vector<std::string>(17, "10.0.0.7:1")),
                       "addresses has 17 entries");
}

TEST(Admission, bounds_its_certificate) {
    const auto with = [](std::size_t n) {
        return changed<Admission>([&](auto& x) { x.certificate = some_bytes(n); });
    };
    expect_accepted(encoded(with(0)));
    expect_accepted(encoded(with(4096)));
    expect_refused(patched(with(4096), 24, 4097, 2), Errc::limit_exceeded,
                   "admission: certificate has 4097 bytes; the limit is 4096");
    expect_not_encoded(with(4097), "certificate has 4097 bytes");
}

TEST(Formation, bounds_counts_and_text) {
    const auto m = example<Formation>();
    expect_accepted(patched(m, 0, kMaxWorldSize, 4));
    expect_accepted(patched(m, 0, 0, 4));
    expect_refused(patched(m, 0, kMaxWorldSize + 1, 4), Errc::limit_exceeded, "formation: joined");
    expect_accepted(patched(m, 4, kMaxWorldSize, 4));
    expect_refused(patched(m, 4, kMaxWorldSize + 1, 4), Errc::limit_exceeded, "world_size");
    expect_refused(patched(m, 4, 0, 4), Errc::malformed, "formation: world_size is 0");
    expect_accepted(encoded(changed<Formation>([](auto& x) { x.text = letters(1024); })));
    expect_refused(patched(m, 8, 1025, 2), Errc::limit_exceeded,
                   "formation: text has 1025 bytes; the limit is 1024");
    expect_refused(patched(m, 10, '\n', 1), Errc::malformed,
                   "formation: text is invalid at byte 0");
    expect_not_encoded(changed<Formation>([](auto& x) { x.text = letters(1025); }),
                       "text has 1025 bytes");
}

TEST(Renewal, bounds_its_request) {
    const auto with = [](std::size_t n) { return Renewal{.signing_request = some_bytes(n)}; };
    expect_accepted(encoded(with(1024)));
    expect_refused(patched(with(1024), 0, 1025, 2), Errc::limit_exceeded,
                   "renewal: signing_request has 1025 bytes; the limit is 1024");
    expect_not_encoded(with(1025), "signing_request has 1025 bytes");
}

TEST(LinkReport, may_report_a_missing_link) {
    expect_accepted(encoded(changed<LinkReport>([](auto& x) { x.address.text = ""; })));
    expect_refused(patched(example<LinkReport>(), 6, 'x', 1), Errc::malformed,
                   "link_report: address length is 14; the text must be an address");
    expect_not_encoded(changed<LinkReport>([](auto& x) { x.address.text = "host:1"; }),
                       "address length is 6");
}

TEST(LinkReport, bounds_the_way) {
    for (const unsigned hops : {0U, 65U}) {
        expect_not_encoded(
            changed<LinkReport>([&](auto& x) { x.hops = static_cast<std::uint8_t>(hops); }),
            "hops is " + std::to_string(hops));
    }
    expect_not_encoded(changed<LinkReport>([](auto& x) { x.via = Rank(kMaxRank + 1); }), "via");
}

TEST(LinkReport, bounds_rank_time_and_text) {
    const auto m = example<LinkReport>();
    expect_accepted(patched(m, 0, kMaxRank, 4));
    expect_refused(patched(m, 0, kMaxRank + 1, 4), Errc::limit_exceeded, "link_report: rank");
    expect_accepted(patched(m, 20, kMaxSeedTime, 8));
    expect_refused(patched(m, 20, kMaxSeedTime + 1, 8), Errc::limit_exceeded,
                   "link_report: round_trip");
    expect_not_encoded(
        changed<LinkReport>([](auto& x) { x.round_trip = std::chrono::nanoseconds(-1); }),
        "round_trip");
    expect_accepted(encoded(changed<LinkReport>([](auto& x) { x.why = letters(1024); })));
    expect_refused(patched(m, 28, 1025, 2), Errc::limit_exceeded, "link_report: why has 1025");
}

TEST(StoredTokens, must_be_in_strict_order_of_id) {
    const auto m = example<StoredTokens>();  // ids from 30 and from 50
    expect_accepted(patched(m, 2, 0x4f, 1));
    expect_refused(patched(m, 2, 0x51, 1), Errc::malformed,
                   "stored_tokens: number of tokens is 2; ids must strictly ascend");
    const auto twice = changed<StoredTokens>([](auto& x) { x.tokens[1].id = x.tokens[0].id; });
    expect_not_encoded(twice, "number of tokens");
    // The last byte decides if all others are equal, and it is compared as unsigned.
    auto close = twice;
    close.tokens[0].id.back() = std::byte{0x7f};
    close.tokens[1].id.back() = std::byte{0x80};
    expect_accepted(encoded(close));
    expect_refused(patched(close, 2 + 15, 0x80, 1), Errc::malformed, "number of tokens");
}

TEST(StoredTokens, revoked_is_a_boolean) {
    const auto m = example<StoredTokens>();
    expect_accepted(patched(m, 2 + 68, 0, 1));
    expect_refused(patched(m, 2 + 68, 2, 1), Errc::limit_exceeded,
                   "stored_tokens: revoked is 2; it must be at most 1");
    expect_refused(patched(m, 0, 16385, 2), Errc::limit_exceeded,
                   "stored_tokens: tokens has 16385 entries; the limit is 16384");
}

/// The bytes of the example after its spent tokens.
constexpr std::size_t kAfterSpent = 40 + 2 * 44 + 48;

TEST(StoredSeed, requires_members_in_order_of_rank_and_tokens_of_id) {
    const auto m = example<StoredSeed>();
    expect_accepted(patched(m, 62, 1, 4));
    expect_refused(patched(m, 62, 2, 4), Errc::malformed,
                   "stored_seed: number of members is 2; ranks must strictly ascend");
    expect_not_encoded(changed<StoredSeed>([](auto& x) { x.members[0].rank = Rank(5); }),
                       "number of members");
    expect_not_encoded(changed<StoredSeed>([](auto& x) { x.spent[0].token = x.spent[1].token; }),
                       "number of spent tokens is 2; ids must strictly ascend");
    const std::size_t spent = encoded(m).size() - kFrameHeaderBytes - kAfterSpent - 40;
    expect_accepted(patched(m, spent, 0x4f, 1));
    expect_refused(patched(m, spent, 0x51, 1), Errc::malformed,
                   "stored_seed: number of spent tokens");
}

TEST(StoredSeed, bounds_each_field) {
    const auto m = example<StoredSeed>();
    expect_accepted(patched(m, 32, kMaxWorldSize, 4));
    expect_refused(patched(m, 32, 0, 4), Errc::malformed, "stored_seed: world_size is 0");
    expect_refused(patched(m, 32, kMaxWorldSize + 1, 4), Errc::limit_exceeded, "world_size");
    expect_refused(patched(m, 36, 16385, 2), Errc::limit_exceeded,
                   "stored_seed: members has 16385 entries");
    const std::size_t spent_count = encoded(m).size() - kFrameHeaderBytes - kAfterSpent - 42;
    expect_refused(patched(m, spent_count, 16385, 2), Errc::limit_exceeded,
                   "stored_seed: spent has 16385 entries; the limit is 16384");
    expect_not_encoded(changed<StoredSeed>([](auto& x) { x.members[0].host = letters(65); }),
                       "host has 65 bytes");
    const std::size_t views = encoded(m).size() - kFrameHeaderBytes - kAfterSpent + 40;
    expect_refused(patched(m, views, 2, 2), Errc::limit_exceeded,
                   "stored_seed: view has 2 entries; the limit is 1");
    expect_refused(patched(m, views + 44 + 48, 2, 2), Errc::limit_exceeded,
                   "stored_seed: accepted has 2 entries; the limit is 1");
}

TEST(StoredSeed, has_the_epoch_of_its_view_and_a_view_for_each_vote) {
    const auto m = example<StoredSeed>();
    expect_refused(patched(m, 24, 5, 8), Errc::malformed,
                   "stored_seed: epoch is 5; it must be that of the view");
    expect_accepted(encoded(changed<StoredSeed>([](auto& x) {
        x.view.clear();
        x.epoch = Epoch(5);
    })));
    const std::size_t voted = encoded(m).size() - kFrameHeaderBytes - 44 - 24;
    expect_accepted(patched(m, voted, 1, 8));
    expect_refused(patched(m, voted, 0, 8), Errc::malformed,
                   "stored_seed: accepted_round is 0; a vote must have a view");
    expect_not_encoded(changed<StoredSeed>([](auto& x) { x.accepted.clear(); }),
                       "accepted_round is 8; a vote must have a view");
}

template <class Message>
void expect_room(const Message& largest) {
    const std::size_t limit = rules_of(Message::kType)->max_body_bytes;
    const Bytes bytes = encoded(largest);
    EXPECT_LE(bytes.size() - kFrameHeaderBytes, limit) << name(Message::kType);
    const auto decoded = decode_frame(bytes);
    ASSERT_TRUE(decoded) << decoded.error().what();
    EXPECT_TRUE(std::get<Message>(decoded->message) == largest);
}

TEST(LargestSeedValue, of_every_message_fits_the_frame_limit) {
    const std::vector<AddressText> addresses(16, {kWideAddress});
    expect_room(example<Proof>());
    expect_room(changed<JoinRequest>([&](auto& x) {
        x.signing_request = some_bytes(1024);
        x.host = letters(64);
        x.addresses = addresses;
    }));
    expect_room(changed<Admission>([](auto& x) { x.certificate = some_bytes(4096); }));
    expect_room(changed<Formation>([](auto& x) { x.text = letters(1024); }));
    expect_room(Renewal{.signing_request = some_bytes(1024)});
    expect_room(changed<LinkReport>([](auto& x) {
        x.address.text = kWideAddress;
        x.why = letters(1024);
    }));
    ViewFrame view = example<ViewFrame>();
    StoredSeed seed = example<StoredSeed>();
    StoredTokens tokens;
    view.members.clear();
    view.left.clear();
    seed.members.clear();
    seed.spent.clear();
    for (std::uint32_t i = 0; i < 16384; ++i) {
        const Id id{static_cast<std::byte>(i >> 8), static_cast<std::byte>(i)};
        view.members.push_back(
            {.node = id, .rank = Rank(i), .addresses = addresses, .host = letters(64)});
        view.left.emplace_back(kMaxRank - 16384 + i);
        seed.spent.push_back({.token = id, .uses = i});
        tokens.tokens.push_back({.id = id});
    }
    view.next_rank = Rank(kMaxRank);
    view.spent = seed.spent;
    seed.members = view.members;
    seed.epoch = view.epoch;
    seed.view = {view};
    seed.accepted = {view};
    expect_room(view);
    expect_room(Ballot{.step = BallotStep::accept,
                       .epoch = view.epoch,
                       .number = {.round = 1},
                       .view = std::vector<ViewFrame>(1, view)});
    expect_room(seed);
    expect_room(tokens);
}

// Computes the sizes of the lists above from their limits alone, since no real address reaches the
// maximum length.
TEST(LargestSeedValue, fits_with_addresses_of_maximum_length) {
    constexpr std::size_t kAddressList = 2 + kMaxAddresses * (2 + kMaxAddressBytes);
    constexpr std::size_t kMember = 16 + 8 + 4 + kAddressList + 32 + 16 + 2 + kMaxHostBytes;
    constexpr std::size_t kLists = kMaxViewMembers * kMember + kMaxStoredTokens * 20;
    constexpr std::size_t kView = 42 + kLists + kMaxViewMembers * 4;
    constexpr std::size_t kLimit = (1U << 25U) - kFrameHeaderBytes;
    static_assert(kView <= kLimit);
    static_assert(59 + kView <= kLimit + 256);
    constexpr std::size_t kSeed = 40 + kLists + 40 + 48 + 2 * (2 + kView);
    static_assert(kSeed <= (1U << 27U) - kFrameHeaderBytes);
    EXPECT_EQ(rules_of(FrameType::view)->max_body_bytes, kLimit);
    EXPECT_EQ(rules_of(FrameType::ballot)->max_body_bytes, kLimit + 256);
    EXPECT_GE(rules_of(FrameType::ballot)->max_body_bytes,
              59 + rules_of(FrameType::view)->max_body_bytes)
        << "every view fits into a ballot";
    EXPECT_EQ(rules_of(FrameType::stored_seed)->max_body_bytes, (1U << 27U) - kFrameHeaderBytes);
}

}  // namespace
}  // namespace nexar::wire
