#include "support/link_driver.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace nexar::testing {

namespace {

// Calls `done` and reads the clock at least this often, even if the stations are always busy or
// have nothing to do.
constexpr Duration kLongestSleep = std::chrono::milliseconds(50);

timespec to_timespec(Duration time) noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

}  // namespace

Station::Station(const Address& local, BufferPool& pool, quic::EndpointOptions options,
                 const std::function<std::unique_ptr<quic::PacketPath>(quic::UdpSocket&)>& through)
    : carrier_(quic::UdpCarrier::open(local, pool, std::move(options), {}, through).value()) {}

port::LinkId Station::dial(const Address& remote, const security::Expectation& expected) {
    const port::LinkId link = endpoint().dial(SteadyClock().now(), remote, expected).value();
    stories_[link.value()].dialed = true;
    return link;
}

port::StreamId Station::send(port::Link& link, const Payload& payload, Memory memory) {
    std::unique_ptr<port::Source> source;
    if (memory == Memory::generated) {
        source = std::make_unique<GeneratedSource>(payload);
    } else {
        std::vector<std::byte> bytes;
        if (!poisoned_.empty()) {
            bytes = std::move(poisoned_.back());
            poisoned_.pop_back();
        }
        source = std::make_unique<MemoryPayloadSource>(payload, std::move(bytes));
    }
    const auto prefix = payload.prefix();
    const port::StreamId stream = link.send(*source, {.prefix = prefix});
    sources_.emplace(StreamKey{link.id().value(), stream.value()}, std::move(source));
    return stream;
}

const Station::Story& Station::story(port::LinkId link) const {
    return stories_.at(link.value());
}

port::Link* Station::link() const noexcept {
    for (const auto& [number, story] : stories_) {
        if (story.link != nullptr) return story.link;
    }
    return nullptr;
}

quic::Connection& Station::connection(port::LinkId link) {
    quic::Connection* connection = endpoint().find(link);
    if (connection == nullptr) throw Error(Errc::link_closed, "the test's link is not up");
    return *connection;
}

std::uint64_t Station::received_bytes() const noexcept {
    std::uint64_t bytes = finished_bytes_;
    for (const auto& [key, sink] : sinks_) bytes += sink->taken();
    return bytes;
}

bool Station::turn(TimePoint now) {
    carrier_->on_ready(now);
    carrier_->flush(now);
    bool any = false;
    while (auto event = carrier_->poll_event()) {
        any = true;
        if (on_event) on_event(*event);
        take(now, *event);
    }
    carrier_->flush(now);
    return any;
}

void Station::take(TimePoint now, const port::LinkEvent& event) {
    if (const auto* up = std::get_if<port::Up>(&event.what)) {
        Story& story = stories_[event.link.value()];
        story.link = up->link;
        story.came_up = true;
        story.dialed = up->dialed;
        story.up_at = now;
        ++came_up_;
    } else if (const auto* down = std::get_if<port::Down>(&event.what)) {
        take_down(now, event.link, down->reason);
    } else if (const auto* refused = std::get_if<port::Refused>(&event.what)) {
        refused_.push_back(*refused);
    } else if (const auto* opened = std::get_if<port::Opened>(&event.what)) {
        take_opened(event.link, opened->stream);
    } else if (const auto* finished = std::get_if<port::Finished>(&event.what)) {
        take_finished(event.link, finished->stream);
    } else if (const auto* aborted = std::get_if<port::Aborted>(&event.what)) {
        faults_.push_back(fmt::format("stream {} was aborted", aborted->stream.value()));
        sinks_.erase({event.link.value(), aborted->stream.value()});
    } else if (const auto* released = std::get_if<port::Released>(&event.what)) {
        take_released(event.link, *released);
    }
}

void Station::take_opened(port::LinkId link_id, port::StreamId stream) {
    port::Link& link = *stories_.at(link_id.value()).link;
    if (on_opened && on_opened(link, stream)) return;
    auto sink = std::make_unique<HashingSink>();
    link.receive(stream, *sink);
    link.open_window(stream);
    sinks_.emplace(StreamKey{link_id.value(), stream.value()}, std::move(sink));
}

void Station::take_finished(port::LinkId link, port::StreamId stream) {
    const auto found = sinks_.find({link.value(), stream.value()});
    if (found == sinks_.end()) return;
    const HashingSink& sink = *found->second;
    finished_bytes_ += sink.taken();
    if (auto verdict = sink.verdict(); !verdict.empty()) {
        faults_.push_back(std::move(verdict));
    } else {
        received_.push_back(sink.announced());
    }
    sinks_.erase(found);
}

void Station::take_released(port::LinkId link, const port::Released& released) {
    ++outcomes_[static_cast<std::size_t>(released.outcome)];
    const auto found = sources_.find({link.value(), released.stream.value()});
    if (found == sources_.end()) {
        faults_.push_back(fmt::format("stream {} was released twice", released.stream.value()));
        return;
    }
    if (auto* memory = dynamic_cast<MemoryPayloadSource*>(found->second.get())) {
        poisoned_.push_back(std::move(*memory).poison());
    }
    sources_.erase(found);
}

void Station::take_down(TimePoint now, port::LinkId link, const Error& reason) {
    Story& story = stories_[link.value()];
    story.link = nullptr;
    story.down = reason;
    story.down_at = now;
    std::erase_if(sinks_, [&](const auto& item) { return item.first.first == link.value(); });
    carrier_->forget(link);
}

std::string Station::describe_link(port::LinkId link) const {
    const auto now = carrier_->endpoint().find(link)->statistics();
    return fmt::format(
        "; link {}: datagrams of {} bytes, round trip {} us, {} of {} bytes in flight, {} parked, "
        "{} black holes",
        link.value(), now.datagram_bytes, now.round_trip.count() / 1000, now.in_flight,
        now.congestion_window, now.parked, now.black_holes);
}

std::string Station::describe() const {
    std::string text =
        fmt::format("{}: {} up, {} refused, {} payloads and {} bytes received, {} sends in flight",
                    address().text(), came_up_, refused_.size(), received_.size(), received_bytes(),
                    sources_.size());
    for (const auto& [number, story] : stories_) {
        if (story.link != nullptr) text += describe_link(port::LinkId(number));
        if (story.down) text += fmt::format("; link {} is down: {}", number, story.down->what());
    }
    for (const auto& refused : refused_)
        text += fmt::format("; refused: {}", refused.reason.what());
    for (const auto& fault : faults_) text += "; " + fault;
    return text;
}

void LinkDriver::remove(Station& station) {
    std::erase(stations_, &station);
}

bool LinkDriver::run_until(const std::function<bool()>& done, Duration within) {
    const TimePoint until = clock_.now() + within;
    while (true) {
        bool any = false;
        for (Station* station : stations_) any = station->turn(clock_.now()) || any;
        if (done()) return true;
        const TimePoint now = clock_.now();
        if (now >= until) return false;
        // Send at once what `done` requested from a link.
        for (Station* station : stations_) station->carrier().flush(now);
        if (!any) sleep(now, until);
    }
}

void LinkDriver::sleep(TimePoint now, TimePoint until) const {
    std::vector<pollfd> polled;
    TimePoint wake = std::min(until, now + kLongestSleep);
    for (const Station* station : stations_) {
        const quic::UdpCarrier& carrier = *station->carrier_;
        const int writable = carrier.wants_write() ? POLLOUT : 0;
        polled.push_back({.fd = carrier.descriptor(),
                          .events = static_cast<short>(POLLIN | writable),
                          .revents = 0});
        if (const auto due = carrier.next_deadline()) wake = std::min(wake, *due);
    }
    for (const int descriptor : watched_) {
        polled.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
    }
    const timespec time = to_timespec(std::max(wake - now, Duration::zero()));
    ::ppoll(polled.data(), polled.size(), &time, nullptr);
}

std::string LinkDriver::describe() const {
    std::string text;
    for (const Station* station : stations_) text += station->describe() + "\n";
    return text;
}

}  // namespace nexar::testing
