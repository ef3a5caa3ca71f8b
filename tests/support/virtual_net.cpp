#include "support/virtual_net.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/pool_profile.hpp"

namespace nexar::testing {

namespace {
// Virtual time must move: an endpoint that wants to be called again and again at the same instant
// would hang a real loop.
constexpr std::uint64_t kMostStepsAtOneInstant = 100'000;
}  // namespace

VirtualHost::VirtualHost(VirtualNet& net, const Address& address, quic::EndpointOptions options)
    : net_(&net), address_(address), random_(std::make_shared<Random>(net.random_.fork())) {
    endpoint_ = std::make_unique<quic::Endpoint>(*this, net.pool(), seeded(std::move(options)));
}

quic::EndpointOptions VirtualHost::seeded(quic::EndpointOptions options) {
    if (!options.random) {
        options.random = [random = random_](std::span<std::uint8_t> out) {
            for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(random->next() >> 56U);
        };
    }
    return options;
}

void VirtualHost::restart(quic::EndpointOptions options) {
    endpoint_.reset();
    endpoint_ = std::make_unique<quic::Endpoint>(*this, net_->pool(), seeded(std::move(options)));
}

void VirtualHost::rebind(const Address& address) {
    address_ = address;
}

bool VirtualHost::has(const Address& address) const noexcept {
    return address == address_ || std::ranges::find(more_, address) != more_.end();
}

Result<port::LinkId> VirtualHost::dial(const Address& remote,
                                       const security::Expectation& expected) {
    return endpoint_->dial(net_->now(), remote, expected);
}

quic::PacketPath::Sent VirtualHost::send(const quic::PacketBatch& batch) {
    if (blocked) return Sent::blocked;
    const bool chosen = !batch.path.local.is_any() && has(batch.path.local);
    for (auto rest = batch.bytes; !rest.empty();) {
        const auto bytes = rest.first(std::min(rest.size(), batch.segment_bytes));
        rest = rest.subspan(bytes.size());
        net_->carry({.from = chosen ? batch.path.local : address_,
                     .to = batch.path.remote,
                     .bytes = {bytes.begin(), bytes.end()},
                     .ecn = batch.ecn});
    }
    return Sent::done;
}

std::optional<TimePoint> VirtualHost::next_deadline() const {
    if (blocked && endpoint_->blocked()) return std::nullopt;
    if (!blocked && endpoint_->blocked()) return net_->now();
    return endpoint_->next_deadline();
}

void VirtualHost::turn() {
    endpoint_->flush(net_->now());
    while (auto event = endpoint_->poll_event()) {
        if (on_event) on_event(std::move(*event));
    }
    endpoint_->flush(net_->now());
}

VirtualNet::VirtualNet(std::uint64_t seed) : random_(seed), pool_(PoolProfile::inference()) {}

Address VirtualNet::address(unsigned index) {
    return Address::parse(fmt::format("10.0.{}.{}:7400", index / 256, index % 256)).value();
}

VirtualHost& VirtualNet::add_host(const Address& address, quic::EndpointOptions options) {
    NEXAR_ASSERT(host_at(address) == nullptr);
    return *hosts_.emplace_back(std::make_unique<VirtualHost>(*this, address, std::move(options)));
}

void VirtualNet::remove_host(VirtualHost& host) {
    std::erase_if(local_, [&](const Local& local) { return local.to == &host; });
    std::erase_if(hosts_, [&](const auto& owned) { return owned.get() == &host; });
}

void VirtualNet::set_weather_to(const VirtualHost& host, const Weather& of_it) {
    std::erase_if(local_, [&](const Local& local) { return local.to == &host; });
    local_.push_back({.to = &host, .weather = of_it});
}

const Weather& VirtualNet::weather_to(const Address& to) const noexcept {
    for (const Local& local : local_) {
        if (local.to->has(to)) return local.weather;
    }
    return weather;
}

VirtualHost* VirtualNet::host_at(const Address& address) const noexcept {
    for (const auto& host : hosts_) {
        if (host->has(address)) return host.get();
    }
    return nullptr;
}

void VirtualNet::carry(Datagram datagram) {
    ++sent_;
    if (tap && !tap(datagram)) return;
    const Weather& now = weather_to(datagram.to);
    if (now.cut || datagram.bytes.size() > now.mtu || random_.chance(now.loss)) return;
    const bool twice = random_.chance(now.duplicate);
    const auto late = [&] {
        const auto most = static_cast<std::uint64_t>(now.jitter.count());
        return now.delay +
               Duration(static_cast<Duration::rep>(most == 0 ? 0 : random_.below(most)));
    };
    auto shared = std::make_shared<Datagram>(std::move(datagram));
    if (twice) put(std::make_shared<Datagram>(*shared), now_ + late());
    if (random_.chance(now.corrupt)) {
        const std::uint64_t bit = random_.below(shared->bytes.size() * 8);
        shared->bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
    put(std::move(shared), now_ + late());
}

void VirtualNet::inject(Datagram datagram, Duration delay) {
    put(std::make_shared<Datagram>(std::move(datagram)), now_ + delay);
}

void VirtualNet::put(std::shared_ptr<Datagram> datagram, TimePoint due) {
    queue_.push({.due = due, .number = numbers_++, .datagram = std::move(datagram)});
}

void VirtualNet::deliver_due() {
    while (!queue_.empty() && queue_.top().due <= now_) {
        const std::shared_ptr<Datagram> datagram = queue_.top().datagram;
        queue_.pop();
        if (VirtualHost* host = host_at(datagram->to); host != nullptr) {
            const quic::Path path{.local = datagram->to, .remote = datagram->from};
            host->endpoint_->receive(now_, path, datagram->ecn, datagram->bytes,
                                     std::max<std::size_t>(datagram->bytes.size(), 1));
        }
    }
}

std::optional<TimePoint> VirtualNet::next_time() const {
    std::optional<TimePoint> first;
    const auto consider = [&](TimePoint time) { first = std::min(first.value_or(time), time); };
    if (!queue_.empty()) consider(queue_.top().due);
    for (const auto& host : hosts_) {
        if (const auto due = host->next_deadline()) consider(*due);
    }
    return first;
}

bool VirtualNet::step(TimePoint limit) {
    const auto next = next_time();
    if (!next || *next > limit) return false;
    steps_at_now_ = *next > now_ ? 0 : steps_at_now_ + 1;
    NEXAR_ASSERT(steps_at_now_ < kMostStepsAtOneInstant, "an endpoint spins: time stands still");
    now_ = std::max(now_, *next);
    deliver_due();
    // By number: what happens in a turn may add a host.
    for (std::size_t i = 0; i < hosts_.size(); ++i) hosts_[i]->turn();
    return true;
}

bool VirtualNet::run_until(const std::function<bool()>& done, Duration at_most) {
    const TimePoint limit = now_ + at_most;
    for (std::size_t i = 0; i < hosts_.size(); ++i) hosts_[i]->turn();
    while (!done()) {
        if (step(limit)) continue;
        now_ = limit;
        return done();
    }
    return true;
}

void VirtualNet::run_for(Duration duration) {
    run_until([] { return false; }, duration);
}

}  // namespace nexar::testing
