#include "process/quic/half_open_flood.hpp"

#include <sys/resource.h>

#include <ctime>
#include <string>

namespace nexar::testing {

namespace {

constexpr std::size_t kFloodPorts = 64;
/// How often the flood forgets all its handshakes, without telling the server.
constexpr Duration kForgetEvery = std::chrono::milliseconds(200);

}  // namespace

HalfOpenFlood::Ports::Ports(const Address& from) {
    const quic::UdpOptions options{
        .receive_buffer = 65536, .send_buffer = 65536, .gso = false, .gro = false};
    for (std::size_t i = 0; i < kFloodPorts; ++i) {
        sockets_.push_back(quic::UdpSocket::open(from.with_port(0), options).value());
    }
}

HalfOpenFlood::HalfOpenFlood(const Address& target, const Address& from)
    : target_(target), pool_(PoolProfile::training()), ports_(from) {
    forget_all();
}

void HalfOpenFlood::forget_all() {
    quic::EndpointOptions options;
    options.accepts = false;
    endpoint_ = std::make_unique<quic::Endpoint>(ports_, pool_, std::move(options));
}

void HalfOpenFlood::begin_one(TimePoint now) {
    ports_.choose_next();
    endpoint_->dial(now, {.address = target_, .peer = port::JoinTarget{}}).value();
    endpoint_->flush(now);
}

void HalfOpenFlood::answer_retries(TimePoint now) {
    for (std::size_t i = 0; i < ports_.count(); ++i) {
        ports_.choose_next();
        ports_.chosen().receive(65536, [&](const quic::UdpSocket::Arrival& arrival) {
            // RFC 9000 17.2.5: ignore everything except Retry.
            if ((std::to_integer<unsigned>(arrival.bytes[0]) & 0xf0U) != 0xf0U) return;
            endpoint_->receive(now, arrival.path, 0, arrival.bytes, arrival.bytes.size());
            endpoint_->flush(now);
        });
    }
}

void HalfOpenFlood::run(double per_second, std::uint64_t warm_up, const Channel& channel) {
    ::setpriority(PRIO_PROCESS, 0, 5);
    const TimePoint start = clock_.now();
    TimePoint forgotten = start;
    std::uint64_t begun = 0;
    while (!channel.heard()) {
        const TimePoint now = clock_.now();
        if (now - forgotten > kForgetEvery) {
            forget_all();
            forgotten = now;
        }
        const double due = per_second * std::chrono::duration<double>(now - start).count();
        for (int i = 0; i < 16 && static_cast<double>(begun) < due; ++i) {
            begin_one(now);
            if (++begun == warm_up) channel.say("flooding");
        }
        answer_retries(now);
        const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
        if (static_cast<double>(begun) >= due) ::nanosleep(&millisecond, nullptr);
    }
    channel.say(std::to_string(begun));
}

}  // namespace nexar::testing
