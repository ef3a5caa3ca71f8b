#include "api_side.hpp"

#include <array>

#include "timing.hpp"

namespace nexar::bench {

namespace {

constexpr std::uint64_t kBulk = 1;
constexpr std::uint64_t kRequest = 2;
constexpr std::uint64_t kNever = 3;

std::span<std::uint8_t> elements(std::span<std::byte> bytes) {
    return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

NodeOptions options_of(const Contender& how) {
    NodeOptions options;
    if (how.waiting == Waiting::spinning) options.spin = std::chrono::seconds(1);
    return options;
}

}  // namespace

ApiSide::ApiSide(bool server, const Contender& how, const Party& party, MessageRing& ring)
    : other_(server ? 1 : 0), ring_(&ring), node_(party, server, options_of(how)) {}

void ApiSide::dial(std::uint16_t port) {
    node_.dial(port);
    accept();
}

void ApiSide::accept() {
    world_ = std::make_unique<Communicator>(node_.world());
}

void ApiSide::send(std::size_t messages) {
    std::array<Work<>, MessageRing::kSlots> works;
    for (std::size_t i = 0; i < messages; ++i) {
        Work<>& work = works[i % works.size()];
        if (work.valid()) work.wait();
        work = world_->send(elements((*ring_)[i % works.size()]), other_, kBulk);
    }
    for (Work<>& work : works) {
        if (work.valid()) work.wait();
    }
}

void ApiSide::receive(std::size_t messages) {
    std::array<Work<Status>, MessageRing::kSlots> works;
    for (std::size_t i = 0; i < messages; ++i) {
        Work<Status>& work = works[i % works.size()];
        if (work.valid()) work.wait();
        work = world_->recv(elements((*ring_)[i % works.size()]), other_, kBulk);
    }
    for (Work<Status>& work : works) {
        if (work.valid()) work.wait();
    }
}

std::vector<double> ApiSide::ping(const PingPlan& plan) {
    std::vector<std::byte> request(plan.bytes, std::byte{0x5a});
    return time_requests(plan.seconds, [&](std::byte mark) {
        request.front() = mark;
        world_->send(elements(request), other_, kRequest).wait();
        world_->recv(elements(request), other_, kRequest).wait();
    });
}

void ApiSide::echo(std::size_t bytes) {
    std::vector<std::byte> request(bytes);
    do {
        world_->recv(elements(request), other_, kRequest).wait();
        world_->send(elements(request), other_, kRequest).wait();
    } while (request.front() != kLastOne);
}

void ApiSide::leave() {
    node_.close();
}

void ApiSide::stay() {
    std::array<std::uint8_t, 1> nothing{};
    const auto gone = world_->recv(std::span(nothing), other_, kNever).result();
    if (gone) throw Error(Errc::protocol_violation, "the client sent more than it announced");
    node_.close();
}

}  // namespace nexar::bench
