#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <vector>

#include "base/descriptor.hpp"
#include "link/common/timer_heap.hpp"
#include "link/shm/invitation.hpp"
#include "link/shm/link.hpp"
#include "link/shm/options.hpp"
#include "link/shm/socket.hpp"
#include "port/link.hpp"

namespace nexar::shm {

/// All shared-memory links of one process. They are set up over links of another kind: invite() and
/// accept().
///
/// A forked child may only destroy its copy. While such a child lives, the peers of its parent do
/// not notice that the parent has ended.
///
/// on_ready() reads memory only; it looks at the sockets after a sleep, and otherwise as rarely as
/// the options say. The descriptor is an epoll set of all sockets.
class Carrier final : public port::Carrier {
public:
    using RandomBytes = std::function<void(std::span<std::uint8_t>)>;

    /// `random` must be unpredictable; empty: the machine's.
    static Result<std::unique_ptr<Carrier>> open(const LinkOptions& options = {},
                                                 RandomBytes random = {});
    ~Carrier() override;
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

    int descriptor() const noexcept override { return sockets_.number(); }
    bool wants_write() const noexcept override { return false; }
    bool on_ready(TimePoint now) override;
    void flush(TimePoint now) override;
    bool has_unsent() const noexcept override { return !ready_.empty() || !bells_.empty(); }
    bool flush_is_urgent(TimePoint now) const noexcept override;
    std::optional<TimePoint> next_deadline() const override;
    std::optional<port::LinkEvent> poll_event() override;
    void forget(port::LinkId link) override;
    Result<port::Invitation> invite(TimePoint now, const Identity& peer) override;
    Result<port::LinkId> accept(TimePoint now, const Identity& peer,
                                port::ConstBytes invitation) override;
    Result<std::shared_ptr<port::SharedMemory>> allocate(std::size_t bytes) override;
    bool fall_asleep() noexcept override;
    void wake_up() noexcept override;
    void abandon(port::LinkId link) override;

    const LinkOptions& options() const noexcept { return options_; }
    /// Connections that have not presented an invitation yet.
    std::size_t half_open() const noexcept { return half_open_.size(); }

private:
    friend class Link;

    struct HalfOpen {
        Descriptor socket{};
        TimePoint until{};
    };

    Carrier(const LinkOptions& options, RandomBytes random, Descriptor sockets) noexcept;

    // For links.
    void emit(port::LinkEvent event);
    /// Inserts an event of a link before its Down, unless Down was already polled.
    void emit_before_down(port::LinkEvent event);
    void set_ready(Link& link) {
        if (std::exchange(link.ready_, true)) return;
        ready_.push_back(&link);
    }
    /// The next flush() only has to ring the bell of this link.
    void set_bell(Link& link) {
        if (link.ready_ || std::exchange(link.bell_due_, true)) return;
        bells_.push_back(&link);
    }
    void came_up(Link& link);
    Result<void> watch(Link& link);
    void watch_process_of(Link& link);
    void detach(Link& link) noexcept;

    // carrier_handshake.cpp
    template <class Array>
    void fill_random(Array& out);
    Result<void> listen();
    Link& add_link(Link::Start start);
    bool look_at_sockets();
    bool look_at_lives();
    void accept_strangers();
    void take_stranger(Descriptor socket);
    /// False if the connection is to be closed.
    bool take_hello(std::uint64_t number);
    void drop_half_open(std::uint64_t number);
    void refuse(int socket, Refusal refusal) noexcept;
    Link* find(port::LinkId link) noexcept;
    Result<void> watch(int socket, std::uint64_t mark);
    void unwatch(int socket) noexcept;

    LinkOptions options_;
    pid_t process_;  // a forked child must not end its parent's links
    RandomBytes random_;
    Descriptor sockets_;  // the epoll set
    Descriptor listener_;
    SocketName name_{};
    BootId boot_{};

    std::vector<Link*> up_;  // null: went down in the current call
    bool went_down_ = false;
    bool asleep_ = false;
    bool look_at_sockets_ = false;
    std::uint32_t polls_ = 0;
    TimePoint looked_at_{};
    TimePoint lives_looked_at_{};
    TimePoint now_{};

    std::map<std::uint64_t, std::unique_ptr<Link>> links_;
    std::uint64_t next_link_;
    std::map<std::uint64_t, HalfOpen> half_open_;  // the oldest first
    std::uint64_t next_half_open_ = 0;
    std::deque<port::LinkEvent> events_;
    std::vector<Link*> bells_;  // may contain links that are ready too, or down
    std::vector<Link*> ready_;
    std::vector<Link*> flushing_;  // used only inside flush()
    link::TimerHeap<Link> timers_;
};

}  // namespace nexar::shm
