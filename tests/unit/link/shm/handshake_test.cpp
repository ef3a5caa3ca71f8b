// Invitations that cannot be accepted, and strangers at the socket.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "link/shm/carrier.hpp"
#include "support/shm_pair.hpp"
#include "unit/link/shm/open_resources.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ShmHandshake : public ::testing::Test {
protected:
    shm::InvitationText invite() {
        auto invitation = inviter().invite(now_, sim::Fabric::identity(2)).value();
        invited_ = invitation.link;
        return *shm::InvitationText::decode(invitation.bytes);
    }
    shm::Carrier& inviter() { return *inviter_; }
    shm::Carrier& invited() { return *accepter_; }
    Result<port::LinkId> accept(const shm::InvitationText& text) {
        return invited().accept(now_, sim::Fabric::identity(1), text.encoded());
    }
    /// A turn of both carriers; keeps the events.
    void turn(Duration later = 3ms) {
        now_ += later;
        for (shm::Carrier* carrier : {inviter_.get(), accepter_.get()}) {
            carrier->on_ready(now_);
            carrier->flush(now_);
            auto& events = carrier == inviter_.get() ? inviter_events_ : accepter_events_;
            while (auto event = carrier->poll_event()) events.push_back(std::move(*event));
        }
    }
    static const port::Down* down(const std::vector<port::LinkEvent>& events) {
        for (const auto& event : events) {
            if (const auto* found = std::get_if<port::Down>(&event.what)) return found;
        }
        return nullptr;
    }
    static bool up(const std::vector<port::LinkEvent>& events) {
        return !events.empty() && std::holds_alternative<port::Up>(events.front().what);
    }
    /// A connection of a stranger that knows the socket's name.
    static Descriptor stranger(const shm::InvitationText& text) {
        return std::move(*shm::connect_to(text.socket));
    }

    TimePoint now_{std::chrono::seconds(1000)};
    std::unique_ptr<shm::Carrier> inviter_ = std::move(*shm::Carrier::open());
    std::unique_ptr<shm::Carrier> accepter_ = std::move(*shm::Carrier::open());
    std::vector<port::LinkEvent> inviter_events_;
    std::vector<port::LinkEvent> accepter_events_;
    port::LinkId invited_{};
};

TEST_F(ShmHandshake, an_accepted_invitation_brings_up_a_link_on_both_sides) {
    ASSERT_TRUE(accept(invite()).has_value());
    for (int i = 0; i < 3; ++i) turn();
    ASSERT_TRUE(up(inviter_events_));
    ASSERT_TRUE(up(accepter_events_));
    EXPECT_TRUE(std::get<port::Up>(inviter_events_.front().what).dialed);
    EXPECT_FALSE(std::get<port::Up>(accepter_events_.front().what).dialed);
    EXPECT_EQ(std::get<port::Up>(accepter_events_.front().what).link->peer(),
              sim::Fabric::identity(1));
    EXPECT_EQ(std::get<port::Up>(inviter_events_.front().what).link->kind(), "shm");
}

TEST_F(ShmHandshake, an_invitation_from_another_host_says_so) {
    auto text = invite();
    text.boot[3] ^= std::byte{1};
    const auto link = accept(text);
    ASSERT_FALSE(link.has_value());
    EXPECT_THAT(link.error().cause(), HasSubstr("another host"));
}

TEST_F(ShmHandshake, an_invitation_from_another_user_says_so) {
    auto text = invite();
    text.user += 1;
    const auto link = accept(text);
    ASSERT_FALSE(link.has_value());
    EXPECT_THAT(link.error().cause(), HasSubstr("another user"));
}

TEST_F(ShmHandshake, a_socket_that_nobody_listens_on_says_so) {
    auto text = invite();
    text.socket[3] ^= std::byte{1};
    const auto link = accept(text);
    ASSERT_FALSE(link.has_value());
    EXPECT_THAT(link.error().cause(), HasSubstr("network namespaces"));
}

TEST_F(ShmHandshake, a_wrong_nonce_is_refused_and_the_invitation_stays_valid) {
    const auto text = invite();
    auto wrong = text;
    wrong.presented[15] ^= std::byte{1};
    ASSERT_TRUE(accept(wrong).has_value());
    for (int i = 0; i < 3; ++i) turn();
    ASSERT_NE(down(accepter_events_), nullptr);
    EXPECT_EQ(down(accepter_events_)->reason.code(), Errc::unauthenticated);
    EXPECT_FALSE(down(accepter_events_)->peer_gone);
    EXPECT_TRUE(inviter_events_.empty());
    accepter_events_.clear();
    ASSERT_TRUE(accept(text).has_value());
    for (int i = 0; i < 3; ++i) turn();
    EXPECT_TRUE(up(inviter_events_));
    EXPECT_TRUE(up(accepter_events_));
}

TEST_F(ShmHandshake, a_listener_that_does_not_know_the_invitation_is_refused) {
    auto text = invite();
    text.answered[0] ^= std::byte{1};
    ASSERT_TRUE(accept(text).has_value());
    for (int i = 0; i < 3; ++i) turn();
    ASSERT_NE(down(accepter_events_), nullptr);
    EXPECT_EQ(down(accepter_events_)->reason.code(), Errc::unauthenticated);
    // The inviter believed that the link is up; it learns that its peer has ended it.
    ASSERT_NE(down(inviter_events_), nullptr);
    EXPECT_FALSE(down(inviter_events_)->peer_gone);
}

TEST_F(ShmHandshake, an_invitation_works_only_once) {
    const auto text = invite();
    ASSERT_TRUE(accept(text).has_value());
    for (int i = 0; i < 3; ++i) turn();
    accepter_events_.clear();
    ASSERT_TRUE(accept(text).has_value());
    for (int i = 0; i < 3; ++i) turn();
    ASSERT_NE(down(accepter_events_), nullptr);
    EXPECT_EQ(down(accepter_events_)->reason.code(), Errc::unauthenticated);
    EXPECT_EQ(inviter_events_.size(), 1U);
}

TEST_F(ShmHandshake, an_invitation_that_nobody_accepts_times_out) {
    invite();
    turn(1900ms);
    EXPECT_EQ(down(inviter_events_), nullptr);
    turn(200ms);
    ASSERT_NE(down(inviter_events_), nullptr);
    EXPECT_EQ(down(inviter_events_)->reason.code(), Errc::timed_out);
}

TEST_F(ShmHandshake, an_abandoned_invitation_goes_down_and_is_refused) {
    const auto text = invite();
    inviter().abandon(invited_);
    turn();
    ASSERT_NE(down(inviter_events_), nullptr);
    EXPECT_EQ(down(inviter_events_)->reason.code(), Errc::cancelled);
    ASSERT_TRUE(accept(text).has_value());
    for (int i = 0; i < 3; ++i) turn();
    EXPECT_NE(down(accepter_events_), nullptr);
}

TEST_F(ShmHandshake, a_stranger_that_sends_rubbish_is_dropped) {
    const auto text = invite();
    const OpenResources before = OpenResources::count();
    const auto own = std::move(*shm::RingMemory::make(std::size_t{64} * 1024));
    std::vector<std::byte> rubbish(100, std::byte{3});
    const shm::Greeting hello{.nonce = text.presented, .ring_bytes = own.ring_bytes()};
    const auto good = hello.encoded();
    {
        std::vector<Descriptor> strangers;
        for (int i = 0; i < 6; ++i) strangers.push_back(stranger(text));
        shm::send_message(strangers[0].number(), rubbish);
        shm::send_message(strangers[1].number(), rubbish, own.descriptor());
        shm::send_message(strangers[2].number(), good);  // no descriptor
        shm::send_message(strangers[3].number(), port::ConstBytes(good).first(39),
                          own.descriptor());
        strangers[4] = Descriptor();
        turn();
        turn();
        EXPECT_EQ(inviter().half_open(), 1U) << "only the silent one is left";
        EXPECT_TRUE(inviter_events_.empty());
    }
    turn();
    EXPECT_EQ(inviter().half_open(), 0U);
    ASSERT_TRUE(accept(text).has_value());
    for (int i = 0; i < 3; ++i) turn();
    EXPECT_TRUE(up(inviter_events_)) << "strangers did not disturb the invitation";
    EXPECT_GT(OpenResources::count().descriptors, before.descriptors);
}

TEST_F(ShmHandshake, memory_that_cannot_be_used_ends_the_handshake) {
    const auto text = invite();
    const auto unsealed = std::move(*shm::make_memory(shm::page_bytes() + 65536));
    const Descriptor socket = stranger(text);
    const shm::Greeting hello{.nonce = text.presented, .ring_bytes = 65536};
    shm::send_message(socket.number(), hello.encoded(), unsealed.number());
    turn();
    ASSERT_NE(down(inviter_events_), nullptr);
    EXPECT_EQ(down(inviter_events_)->reason.code(), Errc::protocol_violation);
    shm::Message message;
    ASSERT_EQ(shm::receive_message(socket.number(), message), shm::Received::message);
    EXPECT_EQ(shm::Greeting::decode(message.content())->refusal, shm::Refusal::unusable_memory);
}

TEST_F(ShmHandshake, silent_strangers_are_bounded_in_number_and_time) {
    const auto text = invite();
    std::vector<Descriptor> strangers;
    for (int i = 0; i < 100; ++i) {
        strangers.push_back(stranger(text));
        turn(1ms);
        EXPECT_LE(inviter().half_open(), shm::LinkOptions{}.max_half_open);
    }
    for (int i = 0; i < 10; ++i) turn(1ms);
    ASSERT_TRUE(accept(text).has_value());
    for (int i = 0; i < 3; ++i) turn();
    EXPECT_TRUE(up(inviter_events_));
    turn(2100ms);
    EXPECT_EQ(inviter().half_open(), 0U);
}

TEST_F(ShmHandshake, nothing_is_left_open_after_links_end) {
    turn();
    invite();  // the listener stays
    const OpenResources before = OpenResources::count();
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(accept(invite()).has_value());
        for (int t = 0; t < 3; ++t) turn();
        ASSERT_TRUE(up(accepter_events_));
        EXPECT_EQ(OpenResources::count().memory_mappings, 8U);
        std::get<port::Up>(accepter_events_.front().what).link->close("bye");
        for (int t = 0; t < 20; ++t) turn();
        ASSERT_NE(down(accepter_events_), nullptr);
        ASSERT_NE(down(inviter_events_), nullptr);
        EXPECT_EQ(OpenResources::count(), before);
        inviter_events_.clear();
        accepter_events_.clear();
    }
}

}  // namespace
}  // namespace nexar::testing
