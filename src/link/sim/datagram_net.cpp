#include "link/sim/datagram_net.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/pool_profile.hpp"

namespace nexar::sim {

DatagramNet::DatagramNet(World& world) : world_(&world), pool_(PoolProfile::inference()) {
    world.add(*this);
}

Address DatagramNet::address(unsigned index) {
    return Address::parse(fmt::format("10.0.{}.{}:7400", index / 256, index % 256)).value();
}

DatagramHost& DatagramNet::add_host(const Address& address, quic::EndpointOptions options) {
    NEXAR_ASSERT(host_at(address) == nullptr);
    return *hosts_.emplace_back(std::make_unique<DatagramHost>(*this, address, std::move(options)));
}

void DatagramNet::remove_host(DatagramHost& host) {
    std::erase_if(local_, [&](const Local& local) { return local.to == &host; });
    host.switch_off();
}

void DatagramNet::kill_process(DatagramHost& host) {
    remove_host(host);
    host.refuses_ = true;
}

void DatagramNet::set_weather_to(const DatagramHost& host, const DatagramWeather& of_it) {
    std::erase_if(local_, [&](const Local& local) { return local.to == &host; });
    local_.push_back({.to = &host, .weather = of_it});
}

const DatagramWeather& DatagramNet::weather_to(const Address& to) const noexcept {
    for (const Local& local : local_) {
        if (local.to->has(to)) return local.weather;
    }
    return weather;
}

DatagramHost* DatagramNet::host_at(const Address& address) const noexcept {
    for (const auto& host : hosts_) {
        if (host->has(address)) return host.get();
    }
    return nullptr;
}

const DatagramHost* DatagramNet::refusing_at(const Address& address) const noexcept {
    for (const auto& host : hosts_) {
        if (host->refuses_ && host->at(address)) return host.get();
    }
    return nullptr;
}

void DatagramNet::partition(const DatagramHost& from, const DatagramHost& to, Way way) {
    cuts_.emplace(&from, &to);
    if (way == Way::both) cuts_.emplace(&to, &from);
}

void DatagramNet::heal(const DatagramHost& from, const DatagramHost& to, Way way) {
    cuts_.erase({&from, &to});
    if (way == Way::both) cuts_.erase({&to, &from});
}

void DatagramNet::pause(DatagramHost& host, TimePoint until) {
    NEXAR_ASSERT(host.driver() != nullptr, "a host can be paused only while an actor drives it");
    world_->pause(*host.driver(), until);
}

Duration DatagramNet::late(const DatagramWeather& of_path) {
    const auto most = static_cast<std::uint64_t>(of_path.jitter.count());
    const std::uint64_t more = most == 0 ? 0 : world_->random().below(most);
    return of_path.delay + Duration(static_cast<Duration::rep>(more));
}

void DatagramNet::carry(DatagramHost& from, Datagram datagram) {
    ++sent_;
    if (tap && !tap(datagram)) return;
    const DatagramWeather& now = weather_to(datagram.to);
    Random& random = world_->random();
    if (now.cut || datagram.bytes.size() > now.mtu || random.chance(now.loss)) return;
    const bool twice = random.chance(now.duplicate);
    auto shared = std::make_shared<Datagram>(std::move(datagram));
    if (twice) put(&from, std::make_shared<Datagram>(*shared), late(now));
    if (random.chance(now.corrupt)) {
        const std::uint64_t bit = random.below(shared->bytes.size() * 8);
        shared->bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
    put(&from, std::move(shared), late(now));
}

void DatagramNet::inject(Datagram datagram, Duration delay) {
    put(nullptr, std::make_shared<Datagram>(std::move(datagram)), delay);
}

void DatagramNet::put(DatagramHost* from, std::shared_ptr<Datagram> datagram, Duration on_the_way,
                      bool refused) {
    flights_.push_back({.due = world_->now() + on_the_way,
                        .number = numbers_++,
                        .from = from,
                        .datagram = std::move(datagram),
                        .refused = refused});
    std::ranges::push_heap(flights_, later);
    world_->touch(*this);
}

void DatagramNet::turn(TimePoint now) {
    while (!flights_.empty() && flights_.front().due <= now) {
        std::ranges::pop_heap(flights_, later);
        const Flight flight = std::move(flights_.back());
        flights_.pop_back();
        deliver(flight);
    }
}

void DatagramNet::deliver(const Flight& flight) {
    if (flight.refused) {
        if (host_at(flight.datagram->from) == flight.from)
            flight.from->take_refusal(*flight.datagram);
        return;
    }
    DatagramHost* to = host_at(flight.datagram->to);
    if (to == nullptr) return refuse(flight);
    if (cuts_.contains({flight.from, to})) return;
    world_->trace(flight.number, flight.datagram->bytes.size());
    to->arrive(flight.datagram);
}

void DatagramNet::refuse(const Flight& flight) {
    const DatagramHost* to = refusing_at(flight.datagram->to);
    if (to == nullptr || flight.from == nullptr) return;
    if (cuts_.contains({flight.from, to}) || cuts_.contains({to, flight.from})) return;
    const DatagramWeather& back = weather_to(flight.datagram->from);
    if (back.cut || world_->random().chance(back.loss)) return;
    put(flight.from, flight.datagram, late(back), true);
}

std::optional<TimePoint> DatagramNet::next_deadline() const {
    if (flights_.empty()) return std::nullopt;
    return flights_.front().due;
}

}  // namespace nexar::sim
