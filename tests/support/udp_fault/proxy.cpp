#include "support/udp_fault/proxy.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::udp_fault {

/// The relay, the lock around it and the thread that drives it, if any.
class Proxy::Runner {
public:
    Runner(std::unique_ptr<Relay> relay, std::uint64_t seed)
        : relay_(std::move(relay)), address_(relay_->address()), seed_(seed) {}

    ~Runner() {
        stopping_ = true;
        relay_->wake();
        if (thread_.joinable()) thread_.join();
    }
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    void start() {
        thread_ = std::thread([this] { run(); });
    }
    bool driven() const noexcept { return thread_.joinable(); }

    const Address& address() const noexcept { return address_; }
    std::uint64_t seed() const noexcept { return seed_; }

    void turn(TimePoint deadline) {
        TimePoint until = deadline;
        {
            const Turnstile locked(*this);
            until = std::min(until, relay_->next_deadline().value_or(deadline));
        }
        // Without the lock, so that other threads can access a sleeping relay.
        const Relay::Ready ready = relay_->wait(until);
        const Turnstile locked(*this);
        relay_->work(ready);
    }

    /// Calls `access(relay)` between two turns. It must not make anything due earlier, because a
    /// sleeping relay is not woken.
    template <class Access>
    auto with_relay(Access access) {
        const Turnstile locked(*this);
        return access(*relay_);
    }

private:
    /// The lock. A busy relay would reacquire a plain mutex before a waiting thread gets to run;
    /// one call was observed to wait for two seconds. So every thread first passes a gate, which a
    /// thread that waits for the lock keeps closed: nobody waits for more than one turn of the
    /// relay.
    class Turnstile {
    public:
        explicit Turnstile(Runner& runner) : gate_(runner.gate_), lock_(runner.mutex_) {
            gate_.unlock();
        }

    private:
        std::unique_lock<std::mutex> gate_;
        std::unique_lock<std::mutex> lock_;
    };

    void run() {
        // The default timer slack would extend every delay by 50 us.
        ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
        while (!stopping_) turn(TimePoint::max());
    }

    std::mutex gate_;
    std::mutex mutex_;
    std::unique_ptr<Relay> relay_;  // guarded by mutex_, except wait() and wake()
    Address address_;
    std::uint64_t seed_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

Proxy::Proxy(std::unique_ptr<Runner> runner) noexcept : runner_(std::move(runner)) {}
Proxy::Proxy(Proxy&&) noexcept = default;
Proxy& Proxy::operator=(Proxy&&) noexcept = default;
Proxy::~Proxy() = default;

Result<Proxy> Proxy::open(const ProxyOptions& options) {
    NEXAR_TRY_VALUE(relay, Relay::open(options));
    return Proxy(std::make_unique<Runner>(std::move(relay), options.seed));
}

Result<Proxy> Proxy::start(const ProxyOptions& options) {
    auto proxy = open(options);
    if (proxy) proxy->runner_->start();
    return proxy;
}

const Address& Proxy::address() const noexcept {
    return runner_->address();
}

std::uint64_t Proxy::seed() const noexcept {
    return runner_->seed();
}

void Proxy::turn(TimePoint deadline) {
    NEXAR_ASSERT(!runner_->driven(), "a started proxy drives itself");
    runner_->turn(deadline);
}

Traffic Proxy::traffic(Direction direction) const {
    return runner_->with_relay([direction](Relay& relay) { return relay.traffic(direction); });
}

Result<void> Proxy::set_faults(Direction direction, const FaultOptions& options) {
    NEXAR_TRY(check(options));
    runner_->with_relay([&](Relay& relay) { relay.impairment(direction).set_options(options); });
    return {};
}

void Proxy::blackhole(Direction direction, bool on) {
    runner_->with_relay([&](Relay& relay) { relay.impairment(direction).set_blackhole(on); });
}

void Proxy::rebind() {
    runner_->with_relay([](Relay& relay) { relay.rebind(); });
}

}  // namespace nexar::udp_fault
