#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "link/quic/udp_carrier.hpp"
#include "port/link.hpp"
#include "support/pattern.hpp"
#include "support/sanitized.hpp"

namespace nexar::testing {

/// `bytes` in a plain build, a sixteenth of that where sanitizers slow everything down.
constexpr std::uint64_t scaled(std::uint64_t bytes) noexcept {
    return kSanitized ? bytes / 16 : bytes;
}

/// A timeout that only a broken program exceeds, even on a loaded machine and with sanitizers.
constexpr Duration patience(std::chrono::seconds plain) noexcept {
    return kSanitized ? 4 * plain : plain;
}

/// One node of a test: a carrier over a real socket, and the history of its links. Receives and
/// checks every payload that peers send, and forgets links that are down. The constructor throws
/// nexar::Error if it cannot start. Driven by a LinkDriver.
class Station {
public:
    /// The history of a link.
    struct Story {
        port::Link* link = nullptr;  // null before Up and after Down
        bool came_up = false;
        bool dialed = false;
        std::optional<Error> down{};
        TimePoint up_at{};
        TimePoint down_at{};
    };
    enum class Memory : std::uint8_t {
        generated,   // generated piece by piece
        referenced,  // read in place, and poisoned once released
    };

    /// `pool` must outlive the station.
    Station(const Address& local, BufferPool& pool, quic::EndpointOptions options,
            const std::function<std::unique_ptr<quic::PacketPath>(quic::UdpSocket&)>& through = {});
    Station(const Station&) = delete;
    Station& operator=(const Station&) = delete;

    quic::UdpCarrier& carrier() noexcept { return *carrier_; }
    quic::Endpoint& endpoint() noexcept { return carrier_->endpoint(); }
    Address address() const noexcept { return carrier_->local(); }

    port::LinkId dial(const Address& remote, const security::Expectation& expected);

    /// Queues a payload and keeps its source until it is released.
    port::StreamId send(port::Link& link, const Payload& payload,
                        Memory memory = Memory::generated);

    const Story& story(port::LinkId link) const;
    /// The first link that is still up; null if there is none.
    port::Link* link() const noexcept;
    /// The connection behind a link, which must be up.
    quic::Connection& connection(port::LinkId link);
    std::size_t came_up() const noexcept { return came_up_; }
    const std::vector<port::Refused>& refused() const noexcept { return refused_; }

    /// Payloads that arrived complete and correct, in the order of completion.
    const std::vector<Payload>& received() const noexcept { return received_; }
    /// Content bytes received so far, of complete payloads and of those in progress.
    std::uint64_t received_bytes() const noexcept;
    /// Sends that have not been released.
    std::size_t sending() const noexcept { return sources_.size(); }
    std::size_t outcomes(port::SendOutcome outcome) const noexcept {
        return outcomes_[static_cast<std::size_t>(outcome)];
    }
    /// Wrong payloads and aborted streams; empty if all is well.
    const std::vector<std::string>& faults() const noexcept { return faults_; }

    /// Called first for a stream that a peer opened. Returns true if it handled the stream, or
    /// wants it to wait.
    std::function<bool(port::Link&, port::StreamId)> on_opened{};
    /// Called with every event before the station handles it.
    std::function<void(const port::LinkEvent&)> on_event{};

    /// For the messages of failed tests.
    std::string describe() const;

private:
    friend class LinkDriver;
    using StreamKey = std::pair<std::uint64_t, std::uint64_t>;  // link and stream

    std::string describe_link(port::LinkId link) const;
    bool turn(TimePoint now);
    void take(TimePoint now, const port::LinkEvent& event);
    void take_opened(port::LinkId link, port::StreamId stream);
    void take_finished(port::LinkId link, port::StreamId stream);
    void take_released(port::LinkId link, const port::Released& released);
    void take_down(TimePoint now, port::LinkId link, const Error& reason);

    std::unique_ptr<quic::UdpCarrier> carrier_;
    std::map<std::uint64_t, Story> stories_;
    std::size_t came_up_ = 0;
    std::vector<port::Refused> refused_;
    std::map<StreamKey, std::unique_ptr<port::Source>> sources_;
    std::map<StreamKey, std::unique_ptr<HashingSink>> sinks_;
    std::vector<std::vector<std::byte>> poisoned_;  // memory for the next referenced payloads
    std::vector<Payload> received_;
    std::uint64_t finished_bytes_ = 0;
    std::array<std::size_t, port::kSendOutcomes> outcomes_{};
    std::vector<std::string> faults_;
};

/// A minimal progress loop for tests: drives any number of stations in the calling thread.
class LinkDriver {
public:
    /// The station must outlive the driver or be removed.
    void add(Station& station) { stations_.push_back(&station); }
    void remove(Station& station);

    /// Also wakes up when this descriptor is readable.
    void watch(int descriptor) { watched_.push_back(descriptor); }

    TimePoint now() const noexcept { return clock_.now(); }

    /// Drives until `done()`, which is called after every turn, returns true, or until the timeout.
    /// Returns whether it was done.
    bool run_until(const std::function<bool()>& done, Duration within);

    /// Drives for this long.
    void run_for(Duration time) {
        run_until([] { return false; }, time);
    }

    std::string describe() const;

private:
    void sleep(TimePoint now, TimePoint until) const;

    SteadyClock clock_;
    std::vector<Station*> stations_;
    std::vector<int> watched_;
};

}  // namespace nexar::testing
