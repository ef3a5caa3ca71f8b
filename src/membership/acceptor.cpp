#include "membership/acceptor.hpp"

#include "base/assert.hpp"
#include "membership/planted.hpp"

namespace nexar::membership {

bool Acceptor::promise(const wire::BallotNumber& number) {
    if (number < vote_.promised) return false;
    if (number == vote_.promised) return true;  // the answer got lost
    if (planted(Bug::promise_forgotten)) return true;
    vote_.promised = number;
    unkept_ = true;
    return true;
}

bool Acceptor::may_vote(const wire::BallotNumber& number) const {
    return number >= vote_.promised;
}

void Acceptor::vote(const wire::BallotNumber& number, const View& view) {
    NEXAR_ASSERT(may_vote(number));
    if (number == vote_.accepted && vote_.accepted_view == view) return;
    if (!planted(Bug::promise_forgotten)) vote_.promised = number;
    vote_.accepted = number;
    vote_.accepted_view = view;
    unkept_ = true;
}

void Acceptor::advance(const View& view) {
    vote_ = Vote{.view = view};
    unkept_ = true;
}

}  // namespace nexar::membership
