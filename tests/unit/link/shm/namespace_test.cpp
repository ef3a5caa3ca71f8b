// Processes that cannot have a link: of another user, or in other namespaces. They need root.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "link/shm/carrier.hpp"
#include "support/child_process.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ShmNamespaces : public ::testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs root";
        const auto invitation = carrier_->invite(now_, Identity{}).value();
        bytes_ = invitation.bytes;
    }
    /// What a child that first calls `leave` says when it accepts the invitation; the child must
    /// believe that it runs as the same user.
    std::string accept_after(const std::function<bool()>& leave) {
        ChildProcess child([&](Channel& channel) {
            if (!leave()) {
                channel.say("not permitted");
                return;
            }
            auto text = *shm::InvitationText::decode(bytes_);
            text.user = ::geteuid();
            const auto carrier = std::move(*shm::Carrier::open());
            const auto link = carrier->accept(now_, Identity{}, text.encoded());
            channel.say(link ? "accepted" : link.error().cause());
            channel.hear(5s);
        });
        const std::string said = child.channel().hear(5s).value_or("silence");
        now_ += 3ms;
        carrier_->on_ready(now_);
        half_open_ = carrier_->half_open();
        return said;
    }

    TimePoint now_{std::chrono::seconds(1000)};
    std::unique_ptr<shm::Carrier> carrier_ = std::move(*shm::Carrier::open());
    std::vector<std::byte> bytes_;
    std::size_t half_open_ = 0;
};

TEST_F(ShmNamespaces, a_process_of_another_user_gets_no_link) {
    const auto said = accept_after([] { return ::seteuid(65'534) == 0; });
    EXPECT_THAT(said, HasSubstr("another user"));
    EXPECT_EQ(half_open_, 0U);
    EXPECT_FALSE(carrier_->poll_event().has_value());
}

TEST_F(ShmNamespaces, a_process_in_another_network_namespace_gets_no_link) {
    const auto said = accept_after([] { return ::unshare(CLONE_NEWNET) == 0; });
    if (said == "not permitted") GTEST_SKIP() << said;
    EXPECT_THAT(said, HasSubstr("network namespaces"));
}

TEST_F(ShmNamespaces, a_process_in_another_pid_namespace_gets_no_link) {
    const auto said = accept_after([] {
        if (::unshare(CLONE_NEWPID) != 0) return false;
        const pid_t inside = ::fork();  // the first process of the new namespace
        if (inside == 0) return true;
        ::waitpid(inside, nullptr, 0);
        ::_exit(0);
    });
    if (said == "not permitted") GTEST_SKIP() << said;
    EXPECT_THAT(said, HasSubstr("pid namespaces"));
}

TEST_F(ShmNamespaces, a_forked_child_that_destroys_its_carrier_does_not_end_the_links) {
    const auto peer = std::move(*shm::Carrier::open());
    ASSERT_TRUE(peer->accept(now_, Identity{}, bytes_).has_value());
    const auto turn = [&](shm::Carrier& carrier) {
        now_ += 3ms;
        carrier.on_ready(now_);
        carrier.flush(now_);
        std::size_t events = 0;
        while (carrier.poll_event()) ++events;
        return events;
    };
    turn(*carrier_);
    turn(*peer);
    turn(*carrier_);
    const pid_t child = ::fork();
    if (child == 0) {
        carrier_.reset();
        ::_exit(0);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(turn(*carrier_), 0U);
        EXPECT_EQ(turn(*peer), 0U);
    }
}

}  // namespace
}  // namespace nexar::testing
