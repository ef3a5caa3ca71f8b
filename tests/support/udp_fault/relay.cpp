#include "support/udp_fault/relay.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/quantity.hpp"
#include "base/try.hpp"

namespace nexar::udp_fault {

namespace {

// The epoll ids of the two descriptors that are not upstreams.
constexpr std::uint64_t kListenerId = 0;
constexpr std::uint64_t kEventId = 1;

constexpr std::size_t kMostRetired = 256;
// The rest waits for the next turn: a burst that becomes due must not starve receiving.
constexpr int kBatchesPerTurn = 4;
constexpr Duration kLongestPeriod = std::chrono::hours(24);

Error refused(std::string cause) {
    return {Errc::invalid_argument, std::move(cause)};
}

Result<void> check_rebind(const RebindOptions& rebind, const Address& target) {
    for (const auto& [name, value] :
         {std::pair("rebind.after", rebind.after), std::pair("rebind.every", rebind.every)}) {
        if (value < Duration::zero() || value > kLongestPeriod) {
            return refused(
                fmt::format("{} is {} ns; allowed: a time from 0 to 24 h", name, value.count()));
        }
    }
    for (const Address& source : rebind.addresses) {
        if (source.family() != target.family()) {
            return refused(
                fmt::format("rebind.addresses has {}, which cannot reach the target {}: "
                            "one is IPv4, the other IPv6",
                            describe(source), describe(target)));
        }
    }
    return {};
}

std::optional<TimePoint> earlier(std::optional<TimePoint> a, std::optional<TimePoint> b) noexcept {
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
}

/// Takes due datagrams, up to a batch.
void collect(Impairment& impairment, TimePoint now, std::vector<Datagram>& due) {
    due.clear();
    while (due.size() < kBatch) {
        auto datagram = impairment.poll(now);
        if (!datagram) return;
        due.push_back(std::move(*datagram));
    }
}

}  // namespace

Result<void> check(const ProxyOptions& options) {
    if (options.target.length == 0 || options.target.port() == 0) {
        return refused(
            fmt::format("cannot send to the target {}; give an address with a port from 1 to 65535",
                        describe(options.target)));
    }
    for (const auto& [name, faults] :
         {std::pair("to_target", &options.to_target), std::pair("to_client", &options.to_client)}) {
        if (const auto valid = check(*faults); !valid) {
            return refused(fmt::format("{}: {}", name, valid.error().cause()));
        }
    }
    if (options.max_clients == 0) return refused("max_clients is 0; allowed: 1 or more");
    return check_rebind(options.rebind, options.target);
}

Result<std::unique_ptr<Relay>> Relay::open(const ProxyOptions& options) {
    NEXAR_TRY(check(options));
    NEXAR_TRY_VALUE(listener, UdpSocket::bind(options.listen));
    Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.valid()) return system_failure("create an epoll set");
    Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.valid()) return system_failure("create an eventfd");
    std::unique_ptr<Relay> relay(
        new Relay(options, std::move(listener), std::move(epoll), std::move(event)));
    NEXAR_TRY(relay->watch(relay->listener_.descriptor(), kListenerId));
    NEXAR_TRY(relay->watch(relay->event_.value(), kEventId));
    // Detects now, not at the first client, a source address that this host does not have.
    for (const Address& source : options.rebind.addresses) {
        if (auto trial = UdpSocket::connect(source.with_port(0), options.target); !trial) {
            return trial.error();
        }
    }
    return relay;
}

Relay::Relay(const ProxyOptions& options, UdpSocket listener, Descriptor epoll, Descriptor event)
    : options_(options),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      event_(std::move(event)),
      // Two generators, so that the interleaving of the two directions does not affect decisions.
      random_(options.seed),
      to_target_(options.to_target, options.queue, random_.fork()),
      to_client_(options.to_client, options.queue, random_.fork()),
      last_id_(kEventId) {}

Result<void> Relay::watch(int descriptor, std::uint64_t id) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.value(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
    return system_failure("watch a socket");
}

std::optional<TimePoint> Relay::next_deadline() const noexcept {
    return earlier(rebind_at_, earlier(to_target_.next_deadline(), to_client_.next_deadline()));
}

Relay::Ready Relay::wait(TimePoint until) const {
    std::array<epoll_event, Ready::kMost> events;
    const Duration left = std::clamp(until - SteadyClock().now(), Duration::zero(), kLongestPeriod);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    timespec timeout{};
    timeout.tv_sec = seconds.count();
    timeout.tv_nsec = (left - seconds).count();
    const int found =
        ::epoll_pwait2(epoll_.value(), events.data(), events.size(), &timeout, nullptr);
    NEXAR_ASSERT(found >= 0 || errno == EINTR, "epoll_pwait2() needs Linux 5.11");
    Ready ready;
    for (int i = 0; i < found; ++i) {
        ready.sockets_[ready.count_++] = events[static_cast<std::size_t>(i)].data.u64;
    }
    return ready;
}

void Relay::wake() const noexcept {
    const std::uint64_t one = 1;
    // Fails only if the counter is full, and then the sleeper wakes up anyway.
    [[maybe_unused]] const ssize_t written = ::write(event_.value(), &one, sizeof one);
}

void Relay::work(const Ready& ready) {
    const TimePoint now = SteadyClock().now();
    for (std::size_t i = 0; i < ready.count_; ++i) {
        const std::uint64_t id = ready.sockets_[i];
        if (id == kListenerId) {
            take_from_clients(now);
        } else if (id == kEventId) {
            std::uint64_t calls = 0;
            [[maybe_unused]] const ssize_t got = ::read(event_.value(), &calls, sizeof calls);
        } else {
            take_from_target(id, now);
        }
    }
    rebind_when_due(now);
    for (int batch = 0; batch < kBatchesPerTurn; ++batch) {
        collect(to_target_, now, due_);
        send_to_target(due_);
        const bool more = due_.size() == kBatch;
        collect(to_client_, now, due_);
        send_to_clients(due_);
        if (!more && due_.size() < kBatch) break;
    }
}

void Relay::take_from_clients(TimePoint now) {
    if (!listener_.receive(batch_)) return;
    ++batches_;
    if (!heard_anyone_) {
        heard_anyone_ = true;
        const RebindOptions& rebind = options_.rebind;
        const Duration first = rebind.after > Duration::zero() ? rebind.after : rebind.every;
        if (first > Duration::zero()) rebind_at_ = now + first;
    }
    for (const Parcel& parcel : batch_.parcels()) {
        // A client without a socket still counts as a flow: its datagrams draw their fates, so that
        // the fates of the others remain as the seed determines.
        const std::uint64_t flow = flow_of(parcel.peer).value_or(0);
        to_target_.offer(now, flow, parcel.ecn, parcel.bytes);
    }
}

void Relay::take_from_target(std::uint64_t id, TimePoint now) {
    const auto found = upstreams_.find(id);
    // Closed after wait() reported it.
    if (found == upstreams_.end()) return;
    Upstream& upstream = found->second;
    if (!upstream.socket.receive(batch_)) return;
    if (!upstream.current) {
        stale_ += batch_.parcels().size();
        return;
    }
    for (const Parcel& parcel : batch_.parcels()) {
        to_client_.offer(now, upstream.flow, parcel.ecn, parcel.bytes);
    }
}

void Relay::send_to_target(const std::vector<Datagram>& datagrams) {
    for (auto first = datagrams.begin(); first != datagrams.end();) {
        const std::uint64_t flow = first->flow;
        const auto last = std::find_if(
            first, datagrams.end(), [flow](const Datagram& other) { return other.flow != flow; });
        parcels_.clear();
        for (auto i = first; i != last; ++i) {
            parcels_.push_back({.bytes = i->bytes, .peer = {}, .ecn = i->ecn});
        }
        std::size_t taken = 0;
        if (const auto client = clients_.find(flow); client != clients_.end()) {
            taken = upstreams_.at(client->second.upstream).socket.send(parcels_);
        }
        unsent_to_target_ += parcels_.size() - taken;
        first = last;
    }
}

void Relay::send_to_clients(const std::vector<Datagram>& datagrams) {
    parcels_.clear();
    for (const Datagram& datagram : datagrams) {
        const auto client = clients_.find(datagram.flow);
        if (client == clients_.end()) continue;
        parcels_.push_back(
            {.bytes = datagram.bytes, .peer = client->second.address, .ecn = datagram.ecn});
    }
    unsent_to_client_ += datagrams.size() - listener_.send(parcels_);
}

std::optional<std::uint64_t> Relay::flow_of(const Address& client) {
    const auto known = flows_.find(client);
    const auto flow = known != flows_.end() ? std::optional(known->second) : admit(client);
    if (flow) clients_.at(*flow).last_heard = batches_;
    return flow;
}

std::optional<std::uint64_t> Relay::admit(const Address& client) {
    if (clients_.size() >= options_.max_clients) forget_most_silent();
    const std::uint64_t flow = last_flow_ + 1;
    const auto upstream = open_upstream(flow);
    if (!upstream) {
        NEXAR_LOG_WARNING("udp_fault: cannot serve client {}: {}", describe(client),
                          upstream.error().what());
        return {};
    }
    last_flow_ = flow;
    flows_.emplace(client, flow);
    clients_.emplace(flow, Client{.address = client, .upstream = *upstream, .last_heard = 0});
    return flow;
}

void Relay::forget_most_silent() {
    const auto silent = std::ranges::min_element(
        clients_, {}, [](const auto& entry) { return entry.second.last_heard; });
    close_upstream(silent->second.upstream);
    flows_.erase(silent->second.address);
    clients_.erase(silent);
}

Result<std::uint64_t> Relay::open_upstream(std::uint64_t flow) {
    NEXAR_TRY_VALUE(socket, UdpSocket::connect(next_source(), options_.target));
    const std::uint64_t id = last_id_ + 1;
    NEXAR_TRY(watch(socket.descriptor(), id));
    last_id_ = id;
    upstreams_.emplace(id, Upstream{.socket = std::move(socket), .flow = flow});
    return id;
}

Address Relay::next_source() {
    const auto& addresses = options_.rebind.addresses;
    if (addresses.empty()) return {};
    return addresses[sources_used_ % addresses.size()].with_port(0);
}

void Relay::rebind() {
    ++sources_used_;
    for (auto& [flow, client] : clients_) {
        const auto fresh = open_upstream(flow);
        if (!fresh) {
            NEXAR_LOG_WARNING("udp_fault: client {} keeps its source port: {}",
                              describe(client.address), fresh.error().what());
            continue;
        }
        retire(std::exchange(client.upstream, *fresh));
    }
}

void Relay::rebind_when_due(TimePoint now) {
    if (!rebind_at_ || *rebind_at_ > now) return;
    const TimePoint planned = *rebind_at_;
    const Duration every = options_.rebind.every;
    rebind_at_.reset();
    // Relative to the planned time, not to now, so that delays do not accumulate.
    if (every > Duration::zero()) rebind_at_ = planned + ((now - planned) / every + 1) * every;
    rebind();
}

void Relay::retire(std::uint64_t upstream) {
    upstreams_.at(upstream).current = false;
    retired_.push_back(upstream);
    if (retired_.size() <= kMostRetired) return;
    close_upstream(retired_.front());
    retired_.pop_front();
}

void Relay::close_upstream(std::uint64_t id) {
    const auto upstream = upstreams_.find(id);
    missed_by_closed_ += upstream->second.socket.missed();
    upstreams_.erase(upstream);
}

Impairment& Relay::impairment(Direction direction) noexcept {
    return direction == Direction::to_target ? to_target_ : to_client_;
}

Traffic Relay::traffic(Direction direction) const {
    Traffic traffic;
    if (direction == Direction::to_target) {
        static_cast<FaultCounters&>(traffic) = to_target_.counters();
        traffic.unsent = unsent_to_target_;
        traffic.missed = listener_.missed();
        return traffic;
    }
    static_cast<FaultCounters&>(traffic) = to_client_.counters();
    traffic.unsent = unsent_to_client_;
    traffic.stale = stale_;
    traffic.missed = missed_by_closed_;
    for (const auto& [id, upstream] : upstreams_) traffic.missed += upstream.socket.missed();
    return traffic;
}

std::string describe(const Traffic& traffic) {
    std::string text = describe(static_cast<const FaultCounters&>(traffic));
    for (const auto& [name, value] :
         {std::pair("unsent", traffic.unsent), std::pair("stale", traffic.stale),
          std::pair("missed", traffic.missed)}) {
        if (value > 0) text += fmt::format(", {} {}", name, value);
    }
    return text;
}

}  // namespace nexar::udp_fault
