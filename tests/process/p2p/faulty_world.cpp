#include <csignal>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "process/p2p/deadline_table.hpp"
#include "support/link_driver.hpp"
#include "support/udp_fault/proxy.hpp"

namespace nexar::testing {

namespace {

constexpr std::uint64_t kPing = 77;

/// A proxy that drops all packets on request.
class ProxyRoute final : public Route {
public:
    explicit ProxyRoute(const Address& peer)
        : proxy_(udp_fault::Proxy::start(options(peer)).value()) {}

    Address address() const override {
        return Address::parse(udp_fault::describe(proxy_.address())).value();
    }
    void cut(bool on) override {
        proxy_.blackhole(udp_fault::Direction::to_target, on);
        proxy_.blackhole(udp_fault::Direction::to_client, on);
    }

private:
    static udp_fault::ProxyOptions options(const Address& peer) {
        udp_fault::ProxyOptions made;
        made.target = udp_fault::Address::parse(peer.text()).value();
        return made;
    }

    udp_fault::Proxy proxy_;
};

std::span<std::uint8_t> numbers(const UnmappableMemory& memory) {
    return {reinterpret_cast<std::uint8_t*>(memory.bytes().data()), memory.bytes().size()};
}

std::unique_ptr<Member> make_member(const TestCluster& cluster, std::uint64_t index,
                                    const LinkUnderTest& link) {
    return std::make_unique<Member>(cluster, index, runtime::make_loop(link.node).value(),
                                    link.node, link.link);
}

/// Answers pings forever.
[[noreturn]] void echo(Communicator& world) {
    for (;;) {
        std::uint8_t value = 0;
        world.recv(std::span(&value, 1), FaultyWorld::kMe, kPing).wait();
        world.send(std::span(&value, 1), FaultyWorld::kMe, kPing).wait();
    }
}

void absorb(const Call& call) {
    std::promise<void> stopped;
    const std::stop_callback tell(call.stop, [&] { stopped.set_value(); });
    stopped.get_future().wait_for(kWithin);
}

/// The process of rank 0 or 1.
void be_peer(const TestCluster& cluster, std::uint64_t index, const LinkUnderTest& link,
             const Channel& parent) {
    const auto member = make_member(cluster, index, link);
    std::array members{dialer(0), dialer(1), dialer(2)};
    if (index == 1) members[0].addresses = {Address::parse(hear(parent, kWithin)).value()};
    member->form(members);
    parent.say(member->address().text());
    member->wait_formed().value();
    const auto absorbs = member->node().serve("absorb", absorb);
    const auto produces = member->node().serve("produce", [&](std::uint64_t bytes) {
        parent.say("producing");
        return ::nexar::Payload(static_cast<std::size_t>(bytes));
    });
    parent.say("serves");
    Communicator world = member->world();
    std::vector<std::unique_ptr<UnmappableMemory>> memory;
    std::vector<Work<>> sends;
    for (const std::size_t size : FaultyWorld::sizes()) {
        for (const bool probed : {false, true}) {
            memory.push_back(std::make_unique<UnmappableMemory>(size));
            sends.push_back(world.send(numbers(*memory.back()), FaultyWorld::kMe,
                                       FaultyWorld::arriving(size, probed)));
        }
    }
    echo(world);
}

}  // namespace

LinkUnderTest quic_link() {
    LinkUnderTest link{.name = "quic"};
    link.node.link = "quic";
    // At the end of a test no peer answers a node that closes.
    link.link.linger = std::chrono::milliseconds(100);
    link.route = [](const Address& peer) { return std::make_unique<ProxyRoute>(peer); };
    return link;
}

LinkUnderTest shm_link() {
    LinkUnderTest link{.name = "shm"};
    link.node.link = "shm";
    link.link.linger = std::chrono::milliseconds(100);
    return link;
}

std::string_view name(Fault fault) noexcept {
    switch (fault) {
        case Fault::stopped:
            return "stopped";
        case Fault::killed:
            return "killed";
        case Fault::cut_off:
            return "cut_off";
    }
    return "unknown";
}

struct LocalDelay::State {
    std::atomic<std::int64_t> delayed_ns = 0;
    std::jthread thread{};
};

LocalDelay::LocalDelay() : state_(std::make_unique<State>()) {
    state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) {
        constexpr auto kPeriod = std::chrono::milliseconds(1);
        while (!stop.stop_requested()) {
            const auto due = std::chrono::steady_clock::now() + kPeriod;
            std::this_thread::sleep_until(due);
            const auto late = std::chrono::steady_clock::now() - due;
            if (late > kPeriod) state->delayed_ns += late.count();
        }
    });
}

LocalDelay::~LocalDelay() = default;

std::chrono::nanoseconds LocalDelay::so_far() const {
    std::int64_t waited_ns = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::int64_t ran = 0;
        std::int64_t waited = 0;
        if (std::ifstream(thread.path() / "schedstat") >> ran >> waited) waited_ns += waited;
    }
    return std::chrono::nanoseconds(state_->delayed_ns.load() + waited_ns);
}

const std::array<std::size_t, 3>& FaultyWorld::sizes() {
    static const std::array<std::size_t, 3> all{8, std::size_t{64} << 10U,
                                                static_cast<std::size_t>(scaled(64U << 20U))};
    return all;
}

std::uint64_t FaultyWorld::arriving(std::size_t size, bool probed) {
    return 2 * size + (probed ? 1 : 0);
}

FaultyWorld::FaultyWorld(const LinkUnderTest& link, Fault fault) : fault_(fault) {
    for (std::uint64_t index = 0; index < 2; ++index) {
        peers_.push_back(std::make_unique<ChildProcess>(
            [&](const Channel& parent) { be_peer(cluster_, index, link, parent); }));
    }
    form(link);
    for (const auto& peer : peers_) await(peer->channel(), "serves", kWithin);
    await_arrivals();
    const std::uint64_t most = sizes().back();
    answering_ =
        node().call<::nexar::Payload>(0, "produce", most, {.timeout = CallOptions::kNoTimeout});
    await(peers_[0]->channel(), "producing", kWithin);
}

void FaultyWorld::form(const LinkUnderTest& link) {
    std::array members{dialer(0), dialer(1), dialer(2)};
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        const Channel& channel = peers_[i]->channel();
        const auto address = Address::parse(hear(channel, kWithin)).value();
        if (i == 0) peers_[1]->channel().say(address.text());
        if (link.route) routes_.push_back(link.route(address));
        members[i].addresses = {link.route ? routes_.back()->address() : address};
    }
    member_ = make_member(cluster_, kMe, link);
    member_->form(members);
    member_->wait_formed().value();
}

void FaultyWorld::await_arrivals() {
    for (int rank = 0; rank < kMe; ++rank) {
        for (const std::size_t size : sizes()) {
            for (const bool probed : {false, true}) {
                auto probe = world().probe(rank, arriving(size, probed));
                finish(probe, soon());
            }
        }
    }
}

void FaultyWorld::begin() {
    if (fault_ == Fault::cut_off) {
        for (const auto& route : routes_) route->cut(true);
    }
    for (const auto& peer : peers_) {
        if (fault_ == Fault::stopped) ::kill(peer->id(), SIGSTOP);
        if (fault_ == Fault::killed) peer->kill();
    }
}

void FaultyWorld::end() {
    for (const auto& route : routes_) route->cut(false);
    for (const auto& peer : peers_) {
        if (fault_ == Fault::stopped) ::kill(peer->id(), SIGCONT);
    }
}

bool FaultyWorld::talks() {
    for (int rank = 0; rank < kMe; ++rank) {
        std::uint8_t sent = static_cast<std::uint8_t>(40 + rank);
        std::uint8_t got = 0;
        auto receive = world().recv(std::span(&got, 1), rank, kPing);
        auto send = world().send(std::span(&sent, 1), rank, kPing);
        finish(send, soon());
        finish(receive, soon());
        if (got != sent) return false;
    }
    return true;
}

}  // namespace nexar::testing
