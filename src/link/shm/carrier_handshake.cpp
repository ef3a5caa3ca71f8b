#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "link/shm/carrier.hpp"
#include "link/shm/system_failure.hpp"

// How links begin. Any process that knows the name of the socket can connect. A stranger costs one
// descriptor for a bounded time, and nothing that it sends touches a link.
namespace nexar::shm {

namespace {

// What an event of the epoll set is about: a link by its number, or one of these.
constexpr std::uint64_t kListenerMark = ~std::uint64_t{0};
constexpr std::uint64_t kHalfOpenMark = std::uint64_t{1} << 63U;
constexpr std::uint64_t kProcessMark = std::uint64_t{1} << 62U;  // and the number of its link

constexpr int kEventsPerLook = 64;
constexpr int kStrangersPerLook = 16;

void machine_random(std::span<std::uint8_t> out) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    NEXAR_ASSERT(got >= 0 && static_cast<std::size_t>(got) == out.size(),
                 "getrandom() returns up to 256 bytes at once");
}

}  // namespace

template <class Array>
void Carrier::fill_random(Array& out) {
    const std::span bytes(reinterpret_cast<std::uint8_t*>(out.data()), out.size());
    if (random_) {
        random_(bytes);
    } else {
        machine_random(bytes);
    }
}

Result<void> Carrier::watch(int socket, std::uint64_t mark) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = mark;
    if (::epoll_ctl(sockets_.number(), EPOLL_CTL_ADD, socket, &event) == 0) return {};
    if (errno == EEXIST && ::epoll_ctl(sockets_.number(), EPOLL_CTL_MOD, socket, &event) == 0) {
        return {};
    }
    return system_failure("watch a Unix socket with epoll");
}

Result<void> Carrier::watch(Link& link) {
    return watch(link.socket_.number(), link.id().value());
}

void Carrier::watch_process_of(Link& link) {
    // Without it, the socket still tells when the process and all its children have ended.
    if (!link.process_) return;
    if (!watch(link.process_.number(), kProcessMark | link.id().value())) {
        link.process_ = Descriptor();
    }
}

// Explicitly, because a forked child may still have the socket open.
void Carrier::unwatch(int socket) noexcept {
    ::epoll_ctl(sockets_.number(), EPOLL_CTL_DEL, socket, nullptr);
}

Result<void> Carrier::listen() {
    if (listener_) return {};
    NEXAR_TRY_VALUE(boot, boot_id());
    fill_random(name_);
    NEXAR_TRY_VALUE(listener, listen_at(name_));
    NEXAR_TRY(watch(listener.number(), kListenerMark));
    boot_ = boot;
    listener_ = std::move(listener);
    return {};
}

Link& Carrier::add_link(Link::Start start) {
    const std::uint64_t number = next_link_++;
    start.id = port::LinkId(number);
    auto made = std::make_unique<Link>(*this, start);
    Link& link = *made;
    links_.emplace(number, std::move(made));
    link.rearm();
    return link;
}

Result<port::Invitation> Carrier::invite(TimePoint now, const Identity& peer) {
    NEXAR_TRY(listen());
    InvitationText text{.boot = boot_, .socket = name_, .user = ::geteuid()};
    fill_random(text.presented);
    fill_random(text.answered);
    const Link& link = add_link({.peer = peer,
                                 .dialed = true,
                                 .invitation = text,
                                 .handshake_until = now + options_.handshake_timeout});
    return port::Invitation{.link = link.id(), .bytes = text.encoded()};
}

Result<port::LinkId> Carrier::accept(TimePoint now, const Identity& peer,
                                     port::ConstBytes invitation) {
    NEXAR_TRY_VALUE(text, InvitationText::decode(invitation));
    NEXAR_TRY_VALUE(boot, boot_id());
    if (boot != text.boot) {
        return Error(Errc::invalid_argument, "the peer runs on another host");
    }
    if (text.user != ::geteuid()) {
        return Error(Errc::not_allowed,
                     fmt::format("the peer runs as another user (user id {}, this node has {})",
                                 text.user, ::geteuid()));
    }
    Link& link = add_link({.peer = peer,
                           .dialed = false,
                           .invitation = text,
                           .handshake_until = now + options_.handshake_timeout});
    if (const auto said = link.say_hello(); !said) {
        link.abandon_at_exit();
        detach(link);
        links_.erase(link.id().value());
        return said.error();
    }
    return link.id();
}

bool Carrier::look_at_sockets() {
    std::array<epoll_event, kEventsPerLook> found{};
    const int count = ::epoll_wait(sockets_.number(), found.data(), kEventsPerLook, 0);
    look_at_sockets_ = count == kEventsPerLook;
    for (int i = 0; i < count; ++i) {
        const std::uint64_t mark = found[static_cast<std::size_t>(i)].data.u64;
        if (mark == kListenerMark) {
            accept_strangers();
        } else if ((mark & kHalfOpenMark) != 0) {
            if (!half_open_.contains(mark)) continue;
            if (!take_hello(mark)) drop_half_open(mark);
        } else if (Link* link = find(port::LinkId(mark & ~kProcessMark));
                   link != nullptr && !link->has_ended()) {
            if ((mark & kProcessMark) != 0) {
                link->on_hang_up();
            } else {
                link->on_socket();
            }
        }
    }
    return count > 0;
}

void Carrier::accept_strangers() {
    for (int i = 0; i < kStrangersPerLook; ++i) {
        Descriptor socket = accept_from(listener_.number());
        if (!socket) return;
        take_stranger(std::move(socket));
    }
    look_at_sockets_ = true;
}

void Carrier::take_stranger(Descriptor socket) {
    const auto credentials = peer_credentials(socket.number());
    if (!credentials || credentials->user != ::geteuid()) return;
    if (credentials->process == 0) {
        refuse(socket.number(), Refusal::other_pid_namespace);
        return;
    }
    if (half_open_.size() >= options_.max_half_open) drop_half_open(half_open_.begin()->first);
    const std::uint64_t number = kHalfOpenMark | next_half_open_++;
    if (!watch(socket.number(), number)) return;
    half_open_.emplace(
        number, HalfOpen{.socket = std::move(socket), .until = now_ + options_.handshake_timeout});
    // An honest peer has already sent its hello.
    if (!take_hello(number)) drop_half_open(number);
}

bool Carrier::take_hello(std::uint64_t number) {
    HalfOpen& half = half_open_.at(number);
    const int socket = half.socket.number();
    Message message;
    switch (receive_message(socket, message)) {
        case Received::nothing:
            return true;
        case Received::closed:
            return false;
        case Received::message:
            break;
    }
    const auto hello = Greeting::decode(message.content());
    if (!hello || message.truncated || message.descriptor_count != 1 ||
        hello->refusal != Refusal::none) {
        return false;
    }
    Link* invited = nullptr;
    for (const auto& [id, link] : links_) {
        const bool waits = link->is_handshaking() && link->start_.dialed && !link->given_up_;
        if (same(link->start_.invitation.presented, hello->nonce) && waits) invited = link.get();
    }
    if (invited == nullptr) {
        refuse(socket, Refusal::unknown_nonce);
        return false;
    }
    Descriptor taken = std::move(half.socket);
    unwatch(taken.number());
    invited->take_hello(std::move(taken), *hello, message);
    return false;
}

void Carrier::drop_half_open(std::uint64_t number) {
    const auto found = half_open_.find(number);
    if (found->second.socket) unwatch(found->second.socket.number());
    half_open_.erase(found);
}

void Carrier::refuse(int socket, Refusal refusal) noexcept {
    const Greeting greeting{.refusal = refusal};
    send_message(socket, greeting.encoded());
}

}  // namespace nexar::shm
