#include "trials.hpp"

#include <algorithm>
#include <cmath>

#include "api_side.hpp"
#include "handshakes.hpp"
#include "stream_side.hpp"
#include "timing.hpp"

namespace nexar::bench {

namespace {

/// Messages after which windows and path-MTU discovery have settled.
constexpr std::size_t kWarmUp = 4;
constexpr double kPingWarmUp = 0.02;  // seconds
constexpr std::size_t kCalibration = 8;
constexpr std::size_t kFewestMessages = 4;

}  // namespace

std::unique_ptr<QuicSide> Trials::dial_quic(const Contender& how) {
    const auto port = control_->receive<Listening>().port;
    auto side = std::make_unique<QuicSide>(QuicSide::Role::client, how, *party_, *ring_);
    side->dial(port);
    return side;
}

std::unique_ptr<Side> Trials::dial(const Contender& how) {
    if (how.transport == Transport::quic) return dial_quic(how);
    if (how.transport == Transport::api) {
        const auto port = control_->receive<Listening>().port;
        auto side = std::make_unique<ApiSide>(false, how, *party_, *ring_);
        side->dial(port);
        return side;
    }
    auto tcp = dial_tcp(control_->receive<Listening>().port);
    if (how.transport == Transport::tls) {
        return std::make_unique<StreamSide>(dial_tls(std::move(tcp), how.waiting), *ring_);
    }
    tcp->start(how.waiting);
    return std::make_unique<StreamSide>(std::move(tcp), *ring_);
}

template <class Send>
BulkTrial Trials::measure_bulk(Side& side, std::size_t messages, Send&& send) {
    side.send(kWarmUp);
    control_->receive<Ready>();
    const double cpu_before = cpu_seconds();
    const double start = seconds_now();
    send();
    const double cpu = cpu_seconds() - cpu_before;
    const auto outcome = control_->receive<Outcome>();
    const double gigabytes =
        static_cast<double>(messages) * static_cast<double>(MessageRing::kMessageBytes) * 1e-9;
    BulkTrial trial{.gb_per_s = gigabytes / (outcome.finished_at - start),
                    .client_cpu_per_gb = cpu / gigabytes,
                    .server_cpu_per_gb = outcome.cpu_seconds / gigabytes,
                    .client = side.notes(),
                    .server = outcome.notes};
    side.leave();
    return trial;
}

BulkTrial Trials::bulk(const Contender& how, std::size_t messages) {
    control_->send(
        Order{.task = Scenario::bulk, .how = how, .warm_up = kWarmUp, .messages = messages});
    const auto side = dial(how);
    return measure_bulk(*side, messages, [&] { side->send(messages); });
}

BulkTrial Trials::bulk_with_requests(const Contender& how, std::size_t messages,
                                     const RequestPlan& plan) {
    control_->send(Order{.task = Scenario::bulk_and_echo,
                         .how = how,
                         .warm_up = kWarmUp,
                         .messages = messages,
                         .request_bytes = plan.bytes});
    const auto side = dial_quic(how);
    std::vector<double> times;
    BulkTrial trial =
        measure_bulk(*side, messages, [&] { times = side->send_with_requests(messages, plan); });
    trial.request_times = std::move(times);
    return trial;
}

std::vector<double> Trials::ping(const Contender& how, const PingPlan& plan) {
    control_->send(Order{.task = Scenario::echo, .how = how, .request_bytes = plan.bytes});
    const auto side = dial(how);
    control_->receive<Ready>();
    side->ping({.bytes = plan.bytes, .seconds = kPingWarmUp});
    std::vector<double> times = side->ping(plan);
    side->leave();
    return times;
}

std::vector<double> Trials::handshakes(std::size_t count) {
    control_->send(Order{.task = Scenario::handshakes, .messages = count});
    return dial_handshakes(*control_, *party_, count);
}

std::size_t Trials::messages_for(const Contender& how, double seconds) {
    const double bytes = bulk(how, kCalibration).gb_per_s * 1e9 * seconds;
    const double messages = std::round(bytes / static_cast<double>(MessageRing::kMessageBytes));
    return std::max(kFewestMessages, static_cast<std::size_t>(messages));
}

}  // namespace nexar::bench
