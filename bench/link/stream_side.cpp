#include "stream_side.hpp"

#include <algorithm>
#include <array>
#include <nexar/error.hpp>

#include "timing.hpp"

namespace nexar::bench {

void StreamSide::read_all(std::span<std::byte> out) {
    while (!out.empty()) {
        const std::size_t got = stream_->read(out.first(std::min(out.size(), kCallBytes)));
        if (got == 0) throw Error(Errc::link_closed, "the other process ended its stream early");
        out = out.subspan(got);
    }
}

void StreamSide::send(std::size_t messages) {
    for (std::size_t message = 0; message < messages; ++message) {
        std::span<const std::byte> rest = (*ring_)[message % MessageRing::kSlots];
        for (; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kCallBytes))) {
            stream_->write(rest.first(std::min(rest.size(), kCallBytes)));
        }
    }
}

void StreamSide::receive(std::size_t messages) {
    for (std::size_t message = 0; message < messages; ++message) {
        read_all((*ring_)[message % MessageRing::kSlots]);
    }
}

std::vector<double> StreamSide::ping(const PingPlan& plan) {
    std::vector<std::byte> request(plan.bytes, std::byte{0x5a});
    return time_requests(plan.seconds, [&](std::byte mark) {
        request.front() = mark;
        stream_->write(request);
        read_all(request);
    });
}

void StreamSide::echo(std::size_t bytes) {
    std::vector<std::byte> request(bytes);
    do {
        read_all(request);
        stream_->write(request);
    } while (request.front() != kLastOne);
}

void StreamSide::stay() {
    std::array<std::byte, 1> none{};
    if (stream_->read(none) != 0) {
        throw Error(Errc::protocol_violation, "the client sent more than it announced");
    }
}

}  // namespace nexar::bench
