#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "port/link.hpp"
#include "runtime/progress.hpp"
#include "runtime/waker.hpp"
#include "support/linkless_carrier.hpp"

namespace nexar::runtime {

/// A deadline that only a broken program exceeds.
inline TimePoint soon() {
    return SteadyClock{}.now() + std::chrono::seconds(60);
}

inline std::unique_ptr<Progress> make_progress(Progress::Options options = {}) {
    return std::move(Progress::make(options)).value();
}
inline std::unique_ptr<Progress> make_user_loop() {
    return make_progress({.drive = Progress::Drive::user_loop});
}

/// A carrier with one descriptor and no links. Any thread may send it numbers.
class FakeCarrier final : public LinklessCarrier {
public:
    FakeCarrier();

    /// May be called from another thread or process.
    void arrive(std::uint64_t number) const;
    std::optional<std::uint64_t> take();
    void want_write(bool wanted) noexcept { wants_write_ = wanted; }

    int descriptor() const noexcept override { return near_.number(); }
    bool wants_write() const noexcept override { return wants_write_; }

private:
    Descriptor near_;
    Descriptor far_;
    bool wants_write_ = false;
};

/// Completes operations when their number arrives or their time has come.
class FakeNode final : public Driven {
public:
    /// Adds itself to `progress`.
    explicit FakeNode(Progress& progress);
    FakeNode(const FakeNode&) = delete;
    FakeNode& operator=(const FakeNode&) = delete;
    ~FakeNode() override { progress_.remove(*this); }

    const FakeCarrier& carrier() const noexcept { return carrier_; }

    /// The next arrival of `number` completes `completion`. The caller holds the lock.
    void expect_locked(std::uint64_t number, Completion& completion);
    void expect(std::uint64_t number, Completion& completion);
    void forget_locked(std::uint64_t number) { expected_.erase(number); }
    void forget_timed_locked() { timed_.clear(); }
    void complete_at(TimePoint when, Completion& completion);
    void complete_now(Completion& completion);
    void want_write(bool wanted);

    std::uint64_t turns() const noexcept { return turns_.load(std::memory_order_relaxed); }

    std::span<port::Carrier* const> carriers() const noexcept override { return carriers_; }
    bool turn(TimePoint now) noexcept override;
    std::optional<TimePoint> next_deadline() const noexcept override;

private:
    Progress& progress_;
    FakeCarrier carrier_;
    std::array<port::Carrier*, 1> carriers_{&carrier_};
    std::map<std::uint64_t, Completion*> expected_;
    std::multimap<TimePoint, Completion*> timed_;
    std::atomic<std::uint64_t> turns_{0};
};

}  // namespace nexar::runtime
