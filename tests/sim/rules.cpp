#include "rules.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

namespace nexar::testing {

namespace {

using Receives = std::vector<std::unique_ptr<Received>>;

bool fits(const Received& receive, const Sent& sent) {
    return receive.at == sent.to && receive.context == sent.context &&
           receive.pattern.fits(Rank(static_cast<std::uint32_t>(sent.from)), Tag(sent.tag));
}

/// If two messages of one sender fit a receive, it gets the one sent first unless an earlier
/// receive got that one.
void expect_order(std::vector<const Received*>& receives) {
    std::ranges::sort(receives, {}, [](const Received* r) { return r->got->number; });
    for (std::size_t later = 0; later < receives.size(); ++later) {
        const Received& second = *receives[later];
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            const Received& first = *receives[earlier];
            if (!fits(second, *first.got)) continue;
            ASSERT_LT(first.order, second.order)
                << describe(*second.got) << " overtook " << describe(*first.got);
        }
    }
}

/// No receive stayed pending while a later one got a message that fits it.
void expect_no_receive_was_skipped(const Receives& receives) {
    for (const auto& left : receives) {
        if (!left->left_over) continue;
        for (std::size_t later = left->order; later < receives.size(); ++later) {
            const Sent* const got = receives[later]->got;
            if (got == nullptr) continue;
            ASSERT_FALSE(fits(*left, *got)) << describe(*got) << " skipped an earlier receive";
        }
    }
}

}  // namespace

std::string describe(const Sent& sent) {
    return fmt::format("message {} of {} bytes from {} to {} in {} with tag {}", sent.number,
                       sent.content.size(), sent.from, sent.to, sent.context, sent.tag);
}

void expect_mpi_rules(const std::vector<std::unique_ptr<Sent>>& sends, const Receives& receives) {
    for (const auto& sent : sends) {
        ASSERT_TRUE(sent->ended) << describe(*sent);
        ASSERT_TRUE(sent->received || sent->cancelled || sent->lost)
            << "was lost: " << describe(*sent);
        ASSERT_FALSE(sent->received && sent->cancelled && !sent->unknown)
            << "was received although it was cancelled: " << describe(*sent);
    }
    std::map<std::array<std::size_t, 3>, std::vector<const Received*>> flows;
    for (const auto& receive : receives) {
        ASSERT_TRUE(receive->ended);
        if (receive->got == nullptr) continue;
        ASSERT_TRUE(fits(*receive, *receive->got)) << describe(*receive->got);
        flows[{receive->got->from, receive->at, receive->context}].push_back(receive.get());
    }
    for (auto& [flow, of_one_sender] : flows) {
        ASSERT_NO_FATAL_FAILURE(expect_order(of_one_sender));
    }
    expect_no_receive_was_skipped(receives);
}

}  // namespace nexar::testing
