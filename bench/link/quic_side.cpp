#include "quic_side.hpp"

#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "timing.hpp"

namespace nexar::bench {

namespace {

quic::EndpointOptions endpoint_options(const Contender& how,
                                       std::shared_ptr<const security::Credentials> credentials) {
    quic::EndpointOptions options;
    options.link.largest_datagram = how.largest_datagram;
    options.link.protection = how.protection;
    options.credentials = std::move(credentials);
    return options;
}

/// Datagrams that the kernel dropped because the socket's receive buffer was full.
std::uint64_t drops_of(int descriptor) {
    std::array<std::uint32_t, SK_MEMINFO_VARS> figures{};
    socklen_t size = sizeof figures;
    if (getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, figures.data(), &size) != 0) return 0;
    return figures[SK_MEMINFO_DROPS];
}

}  // namespace

QuicSide::QuicSide(Role role, const Contender& how, const Party& party, MessageRing& ring)
    : role_(role), party_(&party), ring_(&ring), pool_(PoolProfile::training()), eager_(*this) {
    const auto through = [&](quic::UdpSocket& socket) -> std::unique_ptr<quic::PacketPath> {
        if (!how.lossy) return nullptr;
        // Each side loses its own datagrams.
        const std::uint64_t seed = how.loss_seed * 2 + (role == Role::server ? 1U : 0U);
        auto path = std::make_unique<LossyPath>(socket, how.loss, seed);
        lossy_ = path.get();
        return path;
    };
    carrier_ = quic::UdpCarrier::open(
                   loopback(0), pool_,
                   endpoint_options(how, role == Role::client ? party.client : party.server),
                   {.gso = how.gso, .gro = how.gro, .batched = how.batched}, through)
                   .value();
    loop_ = std::make_unique<LinkLoop>(*carrier_, how.waiting,
                                       [this](const port::LinkEvent& event) { take(event); });
    for (std::size_t slot = 0; slot < MessageRing::kSlots; ++slot) {
        regions_[slot] = ring[slot];
        sources_.emplace_back(std::span(&regions_[slot], 1));
    }
}

void QuicSide::dial(std::uint16_t port) {
    carrier_->endpoint()
        .dial(loop_->now(), loopback(port), {.cluster = party_->cluster, .node = {}})
        .value();
    run([this] { return link_ != nullptr; }, "the handshake");
}

void QuicSide::accept() {
    run([this] { return link_ != nullptr; }, "the handshake");
}

void QuicSide::take(const port::LinkEvent& event) {
    std::visit([this](const auto& what) { on(what); }, event.what);
}

void QuicSide::on(const port::Up& up) {
    link_ = up.link;
    link_->receive(port::Lane::eager, eager_);
}

void QuicSide::on(const port::Down& down) {
    down_ = down.reason;
}

void QuicSide::on(const port::Opened& opened) {
    waiting_.push_back(opened.stream);
    place_waiting();
}

void QuicSide::place_waiting() {
    // Alternate, so that every slot gets messages even if one message ends before the next begins.
    for (std::size_t i = 0; i < in_.size() && !waiting_.empty(); ++i) {
        const std::size_t slot = next_in_;
        next_in_ = (next_in_ + 1) % in_.size();
        if (in_[slot].taken) continue;
        in_[slot].taken = true;
        port::MemorySink& sink = in_[slot].sink.emplace((*ring_)[slot]);
        in_streams_.emplace(waiting_.front().value(), slot);
        link_->receive(waiting_.front(), sink);
        link_->open_window(waiting_.front());
        waiting_.pop_front();
    }
}

void QuicSide::on(const port::Finished& finished) {
    if (finished.bytes != MessageRing::kMessageBytes) {
        throw Error(Errc::malformed, fmt::format("a message of {} bytes arrived with {} bytes",
                                                 MessageRing::kMessageBytes, finished.bytes));
    }
    const auto stream = in_streams_.extract(finished.stream.value());
    in_[stream.mapped()].taken = false;
    ++finished_;
    place_waiting();
}

void QuicSide::on(const port::Released& released) {
    const auto stream = out_streams_.extract(released.stream.value());
    if (released.outcome != port::SendOutcome::delivered) return;  // Down has the reason
    ++released_;
    if (started_ < to_send_) send_slot(stream.mapped());
}

void QuicSide::send_slot(std::size_t slot) {
    ++started_;
    out_streams_.emplace(link_->send(sources_[slot], {}).value(), slot);
}

void QuicSide::run(const std::function<bool()>& done, std::string_view doing) {
    loop_->run([&] { return down_.has_value() || done(); }, doing);
    if (down_ && !leaving_) throw Error(*down_);
}

void QuicSide::start_sending(std::size_t messages) {
    to_send_ = started_ + messages;
    for (std::size_t slot = 0; slot < sources_.size() && started_ < to_send_; ++slot)
        send_slot(slot);
}

void QuicSide::send(std::size_t messages) {
    start_sending(messages);
    run([this] { return all_released(); }, "sending");
}

void QuicSide::receive(std::size_t messages) {
    const std::size_t target = finished_ + messages;
    run([&] { return finished_ >= target; }, "receiving");
}

void QuicSide::drive_for(Duration time) {
    const TimePoint end = loop_->now() + time;
    while (loop_->now() < end && !down_) loop_->turn(end);
}

void QuicSide::settle() {
    constexpr Duration kLongerThanAnyAckDelay = std::chrono::milliseconds(10);
    drive_for(kLongerThanAnyAckDelay);
}

std::size_t QuicSide::EagerSink::write(std::uint64_t /*offset*/, port::ConstBytes bytes) noexcept {
    std::vector<std::byte>& message = owner_->request_;
    for (port::ConstBytes rest = bytes; !rest.empty();) {
        const std::size_t piece = std::min(rest.size(), message.size() - filled_);
        if (piece == 0) return bytes.size();  // no requests are expected
        std::memcpy(message.data() + filled_, rest.data(), piece);
        rest = rest.subspan(piece);
        filled_ += piece;
        if (filled_ == message.size()) {
            filled_ = 0;
            owner_->on_message();
        }
    }
    return bytes.size();
}

void QuicSide::on_message() {
    if (role_ == Role::client) {
        arrivals_.push_back(loop_->now());
        return;
    }
    last_came_ = request_.front() == kLastOne;
    const port::ConstBytes reply = request_;
    link_->write(port::Lane::eager, {&reply, 1});
}

void QuicSide::write_request(std::byte mark) {
    request_.front() = mark;
    const port::ConstBytes request = request_;
    if (!link_->write(port::Lane::eager, {&request, 1})) {
        throw Error(Errc::limit_exceeded, "the eager lane is full because replies do not keep up");
    }
}

std::vector<double> QuicSide::ping(const PingPlan& plan) {
    request_.assign(plan.bytes, std::byte{0x5a});
    return time_requests(plan.seconds, [this](std::byte mark) {
        arrivals_.clear();
        write_request(mark);
        loop_->flush();
        run([this] { return !arrivals_.empty(); }, "a request");
    });
}

void QuicSide::echo(std::size_t bytes) {
    answer(bytes);
    last_came_ = false;
    run([this] { return last_came_; }, "echoing");
}

std::vector<double> QuicSide::send_with_requests(std::size_t messages, const RequestPlan& plan) {
    request_.assign(plan.bytes, std::byte{0x5a});
    arrivals_.clear();
    std::vector<TimePoint> due;
    const TimePoint start = loop_->now();
    const TimePoint end = start + kPatience;
    TimePoint next = start + plan.every;
    start_sending(messages);
    while (!all_released() || arrivals_.size() < due.size()) {
        loop_->turn(all_released() ? end : std::min(next, end));
        if (down_) throw Error(*down_);
        const TimePoint now = loop_->now();
        if (now >= end)
            throw Error(Errc::timed_out, "sending bulk messages and requests took too long");
        if (all_released() || now < next) continue;
        // Send all requests that are due: a long turn must not delay later requests as well.
        for (; next <= now; next += plan.every) {
            due.push_back(next);
            write_request(kMoreFollow);
        }
        loop_->flush();
    }
    std::vector<double> times(due.size());
    std::ranges::transform(arrivals_, due, times.begin(), [](TimePoint came, TimePoint wanted) {
        return in_seconds(came - wanted);
    });
    return times;
}

void QuicSide::leave() {
    leaving_ = true;
    link_->close("the measurement is over");
    run([] { return false; }, "closing the link");
}

void QuicSide::stay() {
    leaving_ = true;
    if (lossy_ != nullptr) {
        // The client announces its close only once, and that datagram may be lost.
        drive_for(std::chrono::milliseconds(200));
        return;
    }
    run([] { return false; }, "waiting for the client to close the link");
}

SideNotes QuicSide::notes() {
    const quic::UdpCounts& counts = carrier_->socket().counts();
    SideNotes notes{.datagrams_out = counts.datagrams_out,
                    .calls_out = counts.calls_out,
                    .datagrams_in = counts.datagrams_in,
                    .calls_in = counts.calls_in,
                    .gso_refused = counts.gso_refused,
                    .lost_on_purpose = lossy_ != nullptr ? lossy_->lost() : 0,
                    .lost_in_send = counts.lost_in_send,
                    .lost_in_kernel = drops_of(carrier_->descriptor())};
    if (const auto* connection =
            link_ != nullptr ? carrier_->endpoint().find(link_->id()) : nullptr) {
        notes.datagram_bytes = connection->statistics().datagram_bytes;
    }
    return notes;
}

}  // namespace nexar::bench
