#include "security/link_state_signer.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "wire/routing_messages.hpp"

namespace nexar::security {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

struct Node {
    KeyPair key = KeyPair::generate().value();
    LinkStateSigner signer = LinkStateSigner::create(key).value();
};

TEST(LinkStateSigner, verifies_what_the_owner_of_the_key_signed) {
    const Node origin;
    const Node relay;
    for (const std::string_view text : {"", "x", "a link state of some length"}) {
        const port::Signature signature = origin.signer.sign(bytes_of(text));
        EXPECT_TRUE(relay.signer.verify(bytes_of(text), origin.signer.key(),
                                        origin.key.public_key_hash(), signature));
    }
}

TEST(LinkStateSigner, has_the_raw_public_key) {
    const Node node;
    EXPECT_EQ(PublicKey::from_raw(node.signer.key()).value(), node.key.public_key());
}

TEST(LinkStateSigner, refuses_other_bytes) {
    const Node node;
    const port::Signature signature = node.signer.sign(bytes_of("down: 3"));
    for (const std::string_view text : {"down: 4", "down: 3 ", "down: ", ""}) {
        EXPECT_FALSE(node.signer.verify(bytes_of(text), node.signer.key(),
                                        node.key.public_key_hash(), signature))
            << text;
    }
}

TEST(LinkStateSigner, refuses_a_signature_with_any_byte_changed) {
    const Node node;
    const port::Signature right = node.signer.sign(bytes_of("down: 3"));
    for (std::size_t i = 0; i < right.size(); ++i) {
        port::Signature wrong = right;
        wrong[i] ^= std::byte{1};
        EXPECT_FALSE(node.signer.verify(bytes_of("down: 3"), node.signer.key(),
                                        node.key.public_key_hash(), wrong))
            << i;
    }
    EXPECT_FALSE(node.signer.verify(bytes_of("down: 3"), node.signer.key(),
                                    node.key.public_key_hash(), port::Signature{}));
}

TEST(LinkStateSigner, refuses_a_key_with_which_the_member_did_not_join) {
    const Node member;
    const Node forger;
    const port::Signature signature = forger.signer.sign(bytes_of("down: 3"));
    EXPECT_FALSE(member.signer.verify(bytes_of("down: 3"), forger.signer.key(),
                                      member.key.public_key_hash(), signature))
        << "the signature is right, but the key is not the member's";
    EXPECT_FALSE(member.signer.verify(bytes_of("down: 3"), member.signer.key(),
                                      member.key.public_key_hash(), signature));
}

TEST(LinkStateSigner, refuses_keys_that_are_not_points) {
    const Node node;
    const port::Signature signature = node.signer.sign(bytes_of("down: 3"));
    for (const std::byte filler : {std::byte{0}, std::byte{1}, std::byte{0xff}}) {
        port::RawKey key{};
        key.fill(filler);
        const auto hash = PublicKey::from_raw(key).value().hash();
        EXPECT_FALSE(node.signer.verify(bytes_of("down: 3"), key, hash, signature));
        EXPECT_FALSE(node.signer.verify(bytes_of("down: 3"), key, hash, port::Signature{}));
    }
}

// The view fixes the key, so a second key for the same signature does not matter; but the signature
// of one link state must not fit another one.
TEST(LinkStateSigner, binds_a_link_state_to_its_cluster_and_content) {
    const Node node;
    wire::LinkState state{.origin = Rank(3), .epoch = Epoch(5), .down = {Rank(4)}};
    state.key = node.signer.key();
    const ClusterId ours(std::array<std::byte, 16>{std::byte{1}});
    const ClusterId other(std::array<std::byte, 16>{std::byte{2}});
    const port::Signature signature = node.signer.sign(wire::signed_bytes(ours, state));
    const auto passes = [&](const ClusterId& cluster) {
        return node.signer.verify(wire::signed_bytes(cluster, state), state.key,
                                  node.key.public_key_hash(), signature);
    };
    EXPECT_TRUE(passes(ours));
    EXPECT_FALSE(passes(other));
    state.down.clear();
    EXPECT_FALSE(passes(ours));
}

}  // namespace
}  // namespace nexar::security
