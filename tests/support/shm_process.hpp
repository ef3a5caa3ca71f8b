#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/time.hpp"
#include "link/shm/carrier.hpp"
#include "support/child_process.hpp"

namespace nexar::testing {

/// One end of a shared-memory link between two processes, driven by the machine's clock.
class ShmProcess {
public:
    using OnEvent = std::function<void(port::LinkEvent&)>;

    explicit ShmProcess(const shm::LinkOptions& options = {}, OnEvent on_event = {});

    /// Sets up a link with the process at the other end of the channel: one of them invites, the
    /// other accepts. Returns false unless the link comes up within 5 s.
    bool invite(const Channel& channel);
    bool accept(const Channel& channel);

    /// on_ready(), flush(), events, flush(). Returns true if anything had arrived.
    bool turn();
    /// Turns until `done`, without sleeping; false if that takes longer than `within`.
    bool spin_until(const std::function<bool()>& done, Duration within = std::chrono::seconds(20));
    /// The same, but sleeps while nothing arrives.
    bool sleep_until(const std::function<bool()>& done, Duration within = std::chrono::seconds(20));

    shm::Carrier& carrier() noexcept { return *carrier_; }
    port::Link& link() noexcept { return *link_; }
    const std::optional<port::Down>& down() const noexcept { return down_; }
    TimePoint now() const noexcept { return clock_.now(); }
    /// Forgets the link, which must be down.
    void forget();

private:
    bool come_up();

    SteadyClock clock_;
    OnEvent on_event_;
    std::unique_ptr<shm::Carrier> carrier_;
    port::LinkId id_{};
    port::Link* link_ = nullptr;
    std::optional<port::Down> down_{};
};

/// A lane's sink that counts, and keeps the last byte.
class CountingSink final : public port::Sink {
public:
    std::size_t write(std::uint64_t /*offset*/, port::ConstBytes bytes) noexcept override {
        count += bytes.size();
        return bytes.size();
    }
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

    std::uint64_t count = 0;
};

}  // namespace nexar::testing
