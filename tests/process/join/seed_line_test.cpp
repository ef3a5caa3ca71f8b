// The seed line of a node, connected to a real seed and driven by the test.

#include "runtime/join/seed_line.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/pool_profile.hpp"
#include "link/carriers.hpp"
#include "process/join/cluster.hpp"

namespace nexar::testing {
namespace {

class Line : public ::testing::Test {
protected:
    explicit Line(int world = 1) : seed_(seed_options(world)) {
        runtime::JoinTerms terms;
        terms.join = security::JoinString::parse(seed_.create_token({})).value();
        terms.seeds = {Address::parse(seed_.addresses().front()).value()};
        terms.host = "here";
        line_.emplace(*carrier_, std::move(terms), security::KeyPair::generate().value(),
                      runtime::HostServices::of_this_machine());
    }

    void turn() {
        pollfd ready{.fd = carrier_->descriptor(), .events = POLLIN, .revents = 0};
        ::poll(&ready, 1, 1);
        const TimePoint now = clock_.now();
        carrier_->on_ready(now);
        carrier_->flush(now);
        while (const auto event = carrier_->poll_event()) {
            line_->handle(now, *event);
            if (std::holds_alternative<port::Down>(event->what)) carrier_->forget(event->link);
        }
        line_->turn(now);
        carrier_->flush(now);
    }

    template <class Predicate>
    void turn_until(Predicate is_so, const char* what) {
        const TimePoint deadline = clock_.now() + kPatience;
        while (!is_so()) {
            ASSERT_LT(clock_.now(), deadline) << what;
            turn();
        }
    }

    SteadyClock clock_;
    Seed seed_;
    BufferPool pool_{PoolProfile::inference()};
    std::unique_ptr<port::Carrier> carrier_ =
        link::open_carrier(pool_, {.local = Address::parse("127.0.0.1:0").value()}).value();
    std::optional<runtime::SeedLine> line_;
};

TEST_F(Line, accepts_reports_after_its_link_went_down_while_it_closes) {
    turn_until([&] { return line_->view().has_value(); }, "no view arrives");
    const wire::LinkReport report{.rank = Rank(0), .address = {"10.0.0.9:41000"}};
    line_->report(report);
    line_->close({});
    line_->report(report);
    turn_until([&] { return line_->idle(); }, "the link does not go down");
    EXPECT_NO_THROW(line_->report(report));
}

class LineOfTwo : public Line {
protected:
    LineOfTwo() : Line(2) {}
};

TEST_F(LineOfTwo, names_the_rank_that_the_seed_waits_for) {
    turn_until([&] { return line_->news().find("waiting for rank 1") != std::string::npos; },
               "the missing rank is not named");
    EXPECT_FALSE(line_->failure());
    line_->close({});
    turn_until([&] { return line_->idle(); }, "the link does not go down");
}

}  // namespace
}  // namespace nexar::testing
