#include "unit/runtime/fake_node.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.hpp"

namespace nexar::runtime {

FakeCarrier::FakeCarrier() {
    std::array<int, 2> ends{};
    const int made = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data());
    NEXAR_ASSERT(made == 0);
    near_ = Descriptor(ends[0]);
    far_ = Descriptor(ends[1]);
}

void FakeCarrier::arrive(std::uint64_t number) const {
    const auto sent = ::send(far_.number(), &number, sizeof number, 0);
    NEXAR_ASSERT(sent == sizeof number);
}

std::optional<std::uint64_t> FakeCarrier::take() {
    std::uint64_t number = 0;
    if (::recv(near_.number(), &number, sizeof number, MSG_DONTWAIT) != sizeof number) return {};
    return number;
}

FakeNode::FakeNode(Progress& progress) : progress_(progress) {
    progress_.add(*this).value();
}

void FakeNode::expect_locked(std::uint64_t number, Completion& completion) {
    expected_.emplace(number, &completion);
}

void FakeNode::expect(std::uint64_t number, Completion& completion) {
    const Progress::Guard guard(progress_);
    expect_locked(number, completion);
}

void FakeNode::complete_at(TimePoint when, Completion& completion) {
    const Progress::Guard guard(progress_);
    timed_.emplace(when, &completion);
}

void FakeNode::complete_now(Completion& completion) {
    const Progress::Guard guard(progress_);
    progress_.complete(completion);
}

void FakeNode::want_write(bool wanted) {
    const Progress::Guard guard(progress_);
    carrier_.want_write(wanted);
}

bool FakeNode::turn(TimePoint now) noexcept {
    turns_.fetch_add(1, std::memory_order_relaxed);
    bool active = false;
    for (int i = 0; i < 4; ++i) {
        const auto number = carrier_.take();
        if (!number) break;
        active = true;
        const auto found = expected_.find(*number);
        if (found == expected_.end()) continue;
        Completion* const completion = found->second;
        expected_.erase(found);
        progress_.complete(*completion);
    }
    while (!timed_.empty() && timed_.begin()->first <= now) {
        Completion* const completion = timed_.begin()->second;
        timed_.erase(timed_.begin());
        progress_.complete(*completion);
        active = true;
    }
    return active;
}

std::optional<TimePoint> FakeNode::next_deadline() const noexcept {
    if (timed_.empty()) return std::nullopt;
    return timed_.begin()->first;
}

}  // namespace nexar::runtime
