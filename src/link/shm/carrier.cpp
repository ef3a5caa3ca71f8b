#include "link/shm/carrier.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::shm {

Carrier::Carrier(const LinkOptions& options, RandomBytes random, Descriptor sockets) noexcept
    : options_(options),
      process_(::getpid()),
      random_(std::move(random)),
      sockets_(std::move(sockets)),
      next_link_(options.first_link) {}

Result<std::unique_ptr<Carrier>> Carrier::open(const LinkOptions& options, RandomBytes random) {
    NEXAR_ASSERT(valid_ring_size(options.ring_bytes));
    NEXAR_ASSERT(options.chunk_bytes + kNumberBytes <= max_content(options.ring_bytes));
    NEXAR_ASSERT(options.least_window >= options.chunk_bytes && options.lane_share >= 2);
    Descriptor sockets(::epoll_create1(EPOLL_CLOEXEC));
    if (!sockets) {
        return Error(Errc::out_of_memory,
                     "this node could not create an epoll set; it has too many open files");
    }
    return std::unique_ptr<Carrier>(new Carrier(options, std::move(random), std::move(sockets)));
}

Carrier::~Carrier() {
    if (process_ != ::getpid()) return;
    for (const auto& [number, link] : links_) link->abandon_at_exit();
}

bool Carrier::on_ready(TimePoint now) {
    now_ = now;
    bool any = false;
    for (Link* link : up_) {  // poll() only replaces pointers by null
        if (link != nullptr && link->poll()) any = true;
    }
    if (look_at_sockets_ || ++polls_ >= options_.socket_polls ||
        now - looked_at_ >= options_.socket_interval) {
        looked_at_ = now;
        polls_ = 0;
        any = look_at_sockets() || any;
        if (now - lives_looked_at_ >= options_.life_interval) any = look_at_lives() || any;
    }
    if (std::exchange(went_down_, false)) std::erase(up_, nullptr);
    return any;
}

bool Carrier::look_at_lives() {
    lives_looked_at_ = now_;
    bool any = false;
    for (Link* link : up_) {
        if (link == nullptr) continue;
        const std::uint64_t read = link->reader_.read();
        if (std::exchange(link->read_at_look_, read) != read || !link->life_.has_ended()) continue;
        link->on_hang_up();
        any = true;
    }
    return any;
}

void Carrier::flush(TimePoint now) {
    now_ = now;
    while (!timers_.empty() && timers_.due() <= now) {
        Link& link = timers_.first();
        timers_.remove(link);
        set_ready(link);
    }
    while (!half_open_.empty() && half_open_.begin()->second.until <= now) {
        drop_half_open(half_open_.begin()->first);
    }
    if (!ready_.empty()) {
        std::swap(ready_, flushing_);
        for (Link* link : flushing_) link->ready_ = false;
        for (Link* link : flushing_) link->flush(now);
        flushing_.clear();
    }
    for (Link* link : bells_) {
        link->bell_due_ = false;
        if (link->is_up()) link->ring_if_asleep();
    }
    bells_.clear();
    if (std::exchange(went_down_, false)) std::erase(up_, nullptr);
}

bool Carrier::flush_is_urgent(TimePoint now) const noexcept {
    return !events_.empty() || has_unsent() || (!timers_.empty() && timers_.due() <= now);
}

std::optional<TimePoint> Carrier::next_deadline() const {
    if (!events_.empty() || has_unsent()) return now_;
    TimePoint due = timers_.empty() ? TimePoint::max() : timers_.due();
    if (!half_open_.empty()) due = std::min(due, half_open_.begin()->second.until);
    return due == TimePoint::max() ? std::nullopt : std::optional(due);
}

std::optional<port::LinkEvent> Carrier::poll_event() {
    if (events_.empty()) return std::nullopt;
    port::LinkEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
}

void Carrier::forget(port::LinkId id) {
    const auto found = links_.find(id.value());
    if (found == links_.end()) return;
    NEXAR_ASSERT(found->second->is_down(), "only a link that is Down can be forgotten");
    if (found->second->ready_) std::erase(ready_, found->second.get());
    if (found->second->bell_due_) std::erase(bells_, found->second.get());
    links_.erase(found);
}

void Carrier::abandon(port::LinkId id) {
    Link* link = find(id);
    if (link != nullptr && link->is_handshaking()) link->give_up();
}

Link* Carrier::find(port::LinkId id) noexcept {
    const auto found = links_.find(id.value());
    return found == links_.end() ? nullptr : found->second.get();
}

void Carrier::emit(port::LinkEvent event) {
    events_.push_back(std::move(event));
}

void Carrier::emit_before_down(port::LinkEvent event) {
    const auto down = std::ranges::find_if(events_, [&](const port::LinkEvent& waiting) {
        return waiting.link == event.link && std::holds_alternative<port::Down>(waiting.what);
    });
    if (down != events_.end()) events_.insert(down, std::move(event));
}

void Carrier::came_up(Link& link) {
    up_.push_back(&link);
    // The driver may be about to wait, and the peer may already have written something.
    if (asleep_) link.set_sleep(true);
}

void Carrier::detach(Link& link) noexcept {
    timers_.remove(link);
    if (link.socket_) unwatch(link.socket_.number());
    if (link.process_) unwatch(link.process_.number());
    const auto found = std::ranges::find(up_, &link);
    if (found == up_.end()) return;
    *found = nullptr;
    went_down_ = true;
}

// The writer of a record stores it, fences, and reads our sleep word; we store that word, fence,
// and look for records. So at least one of the two sees what the other one did.
bool Carrier::fall_asleep() noexcept {
    asleep_ = true;
    for (Link* link : up_) {
        if (link != nullptr) link->set_sleep(true);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool quiet = true;
    for (Link* link : up_) {
        if (link == nullptr) continue;
        link->ring_if_asleep();
        if (link->something_to_do()) quiet = false;
    }
    if (!quiet) {
        wake_up();
        look_at_sockets_ = false;
    }
    return quiet;
}

void Carrier::wake_up() noexcept {
    if (!std::exchange(asleep_, false)) return;
    look_at_sockets_ = true;
    for (Link* link : up_) {
        if (link != nullptr) link->set_sleep(false);
    }
}

Result<std::shared_ptr<port::SharedMemory>> Carrier::allocate(std::size_t bytes) {
    if (bytes == 0 || bytes > options_.max_shared_bytes) {
        return Error(Errc::invalid_argument,
                     "shared memory must have at least one byte and fit into the memory that one "
                     "peer may share");
    }
    NEXAR_TRY_VALUE(made, OwnShare::make(bytes));
    return std::shared_ptr<port::SharedMemory>(std::move(made));
}

}  // namespace nexar::shm
