#include "wire/view.hpp"

#include <gtest/gtest.h>

#include <variant>

#include "samples.hpp"
#include "wire/codec.hpp"

namespace nexar::wire {
namespace {

using testing::encoded;

Address address(std::string_view text) {
    return Address::parse(text).value();
}

View some_view() {
    return {.epoch = Epoch(9),
            .members = {{.node = NodeId(Id{std::byte{1}, std::byte{2}}),
                         .incarnation = Incarnation(3),
                         .rank = Rank(0),
                         .addresses = {address("10.0.0.7:7400"), address("[fd00::7]:7401")},
                         .host = "node7",
                         .key_hash = {std::byte{0x11}, std::byte{0x12}},
                         .token = {std::byte{0x21}, std::byte{0x22}}},
                        {.node = NodeId(Id{std::byte{4}}),
                         .incarnation = Incarnation(~std::uint64_t{0}),
                         .rank = Rank(5)}},
            .witness = Witness{.seed = NodeId(Id{std::byte{6}}), .incarnation = Incarnation(7)},
            .next_rank = Rank(8),
            .spent = {{.token = {std::byte{0x21}, std::byte{0x22}}, .uses = 3},
                      {.token = {std::byte{0x31}}, .uses = 4}},
            .left = {Rank(1), Rank(7)}};
}

View through_bytes(const View& view) {
    const auto decoded = decode_frame(encoded(in_wire(view))).value();
    return from_wire(std::get<ViewFrame>(decoded.message));
}

TEST(WireView, survives_the_round_trip) {
    EXPECT_EQ(through_bytes(some_view()), some_view());
    EXPECT_EQ(through_bytes({.epoch = Epoch(1)}), View{.epoch = Epoch(1)});
}

TEST(WireView, maps_every_field) {
    const ViewFrame frame = in_wire(some_view());
    EXPECT_EQ(frame.epoch, Epoch(9));
    EXPECT_EQ(frame.witness, (Id{std::byte{6}}));
    EXPECT_EQ(frame.witness_incarnation, 7U);
    ASSERT_EQ(frame.members.size(), 2U);
    EXPECT_EQ(frame.members[0], (ViewMember{.node = {std::byte{1}, std::byte{2}},
                                            .incarnation = 3,
                                            .rank = Rank(0),
                                            .addresses = {{"10.0.0.7:7400"}, {"[fd00::7]:7401"}},
                                            .key_hash = {std::byte{0x11}, std::byte{0x12}},
                                            .token = {std::byte{0x21}, std::byte{0x22}},
                                            .host = "node7"}));
    EXPECT_EQ(frame.members[1].rank, Rank(5));
    EXPECT_TRUE(frame.members[1].addresses.empty());
    EXPECT_EQ(frame.members[1].token, Id{});
    EXPECT_EQ(frame.next_rank, Rank(8));
    EXPECT_EQ(frame.spent,
              (std::vector<SpentToken>{{.token = {std::byte{0x21}, std::byte{0x22}}, .uses = 3},
                                       {.token = {std::byte{0x31}}, .uses = 4}}));
    EXPECT_EQ(frame.left, (std::vector<Rank>{Rank(1), Rank(7)}));
}

TEST(WireView, a_missing_witness_stays_missing) {
    View view = some_view();
    view.witness.reset();
    EXPECT_EQ(in_wire(view).witness, Id{});
    EXPECT_EQ(through_bytes(view), view);
    // A witness with incarnation 0 is still a witness.
    view.witness = Witness{.seed = NodeId(Id{std::byte{6}}), .incarnation = Incarnation(0)};
    EXPECT_EQ(through_bytes(view), view);
}

TEST(WireView, random_frames_survive_the_round_trip) {
    testing::Random random;
    for (int i = 0; i < 1000; ++i) {
        const auto frame = testing::random_message<ViewFrame>(random);
        ASSERT_EQ(in_wire(from_wire(frame)), frame);
    }
}

TEST(WireView, keeps_the_order_of_addresses) {
    const std::vector<Address> addresses{address("[::1]:1"), address("9.9.9.9:9"),
                                         address("1.1.1.1:1")};
    EXPECT_EQ(from_wire(in_wire(addresses)), addresses);
    EXPECT_EQ(in_wire(addresses)[1].text, "9.9.9.9:9");
}

// A dual-stack socket represents an IPv4 address as IPv6; in a view it has only one text.
TEST(WireView, writes_a_mapped_address_as_ipv4) {
    View view = some_view();
    view.members[1].addresses = {address("10.0.0.9:41000").mapped()};
    EXPECT_EQ(through_bytes(view).members[1].addresses,
              std::vector<Address>{address("10.0.0.9:41000")});
}

}  // namespace
}  // namespace nexar::wire
