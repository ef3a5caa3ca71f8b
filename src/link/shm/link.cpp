#include "link/shm/link.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "link/shm/carrier.hpp"

namespace nexar::shm {

namespace {

constexpr Duration kConnectAgainAfter = std::chrono::milliseconds(2);
// Bells and shares that one look at a socket takes.
constexpr int kMessagesPerLook = 32;

Error refused_by_peer(Refusal refusal) {
    switch (refusal) {
        case Refusal::other_pid_namespace:
            return {Errc::not_allowed,
                    "this node and its peer run in different pid namespaces (containers)"};
        case Refusal::unknown_nonce:
            return {Errc::unauthenticated, "the peer does not know the invitation, or gave it up"};
        case Refusal::unusable_memory:
            return {Errc::not_allowed, "the peer could not map the memory of this node"};
        case Refusal::none:
            break;
    }
    return {Errc::protocol_violation, "the peer sent an answer that is not valid"};
}

}  // namespace

Link::Link(Carrier& carrier, const Start& start)
    : carrier_(&carrier), options_(&carrier.options()), start_(start) {
    for (OutLane& lane : lanes_out_) lane.limit = options_->lane_window;
    for (InLane& lane : lanes_in_) lane.limit = options_->lane_window;
    shares_in_ = std::make_shared<ShareBudget>();
}

Link::~Link() = default;

void Link::emit(decltype(port::LinkEvent::what) what) {
    carrier_->emit({.link = start_.id, .what = std::move(what)});
}

void Link::touch() {
    carrier_->set_ready(*this);
}

TimePoint Link::timer() const noexcept {
    if (state_ == State::down) return TimePoint::max();
    if (state_ == State::handshaking) return std::min(start_.handshake_until, hello_at_);
    return linger_until_;
}

void Link::rearm() {
    carrier_->timers_.set(*this, timer());
}

void Link::violated(std::string_view what) {
    failure_ = Error(Errc::protocol_violation,
                     fmt::format("the peer {}, so this node closed the link", what));
}

// Handshake.

Result<void> Link::say_hello() {
    hello_at_ = TimePoint::max();
    if (!own_) {
        NEXAR_TRY_VALUE(own, RingMemory::make(options_->ring_bytes));
        own_ = std::move(own);
    }
    NEXAR_TRY_VALUE(socket, connect_to(start_.invitation.socket));
    if (!socket) {
        hello_at_ = carrier_->now_ + kConnectAgainAfter;
        rearm();
        return {};
    }
    NEXAR_TRY_VALUE(credentials, peer_credentials(socket.number()));
    if (credentials.user != ::geteuid()) {
        return Error(Errc::not_allowed, "another user listens on the peer's socket");
    }
    if (credentials.process == 0) return refused_by_peer(Refusal::other_pid_namespace);
    const Greeting hello{.nonce = start_.invitation.presented, .ring_bytes = own_.ring_bytes()};
    if (send_message(socket.number(), hello.encoded(), own_.descriptor()) != Sent::sent) {
        // It may have said why before.
        Message message;
        if (receive_message(socket.number(), message) == Received::message) {
            const auto answer = Greeting::decode(message.content());
            if (answer && answer->refusal != Refusal::none) return refused_by_peer(answer->refusal);
        }
        return Error(Errc::link_closed, "the peer closed its socket during the handshake");
    }
    socket_ = std::move(socket);
    return carrier_->watch(*this);
}

void Link::take_hello(Descriptor socket, const Greeting& hello, const Message& message) {
    socket_ = std::move(socket);
    auto theirs = RingMemory::map_peer(message.descriptors.front(), hello.ring_bytes);
    if (!theirs) {
        carrier_->refuse(socket_.number(), Refusal::unusable_memory);
        end(theirs.error(), PeerProcess::alive);
        return;
    }
    auto own = RingMemory::make(options_->ring_bytes);
    if (!own) {
        end(own.error(), PeerProcess::alive);
        return;
    }
    own_ = std::move(*own);
    const Greeting answer{.nonce = start_.invitation.answered, .ring_bytes = own_.ring_bytes()};
    if (send_message(socket_.number(), answer.encoded(), own_.descriptor()) != Sent::sent ||
        !carrier_->watch(*this)) {
        end(Error(Errc::link_closed, "the peer closed its socket during the handshake"),
            PeerProcess::alive);
        return;
    }
    come_up(std::move(*theirs));
}

void Link::take_answer(Message& message) {
    const auto answer = Greeting::decode(message.content());
    if (answer && answer->refusal != Refusal::none) {
        end(refused_by_peer(answer->refusal), PeerProcess::alive);
        return;
    }
    if (!answer || message.truncated || message.descriptor_count != 1) {
        end(refused_by_peer(Refusal::none), PeerProcess::alive);
        return;
    }
    if (!same(answer->nonce, start_.invitation.answered)) {
        end(Error(Errc::unauthenticated,
                  "the process at the peer's socket does not know the invitation"),
            PeerProcess::alive);
        return;
    }
    auto theirs = RingMemory::map_peer(message.descriptors.front(), answer->ring_bytes);
    if (!theirs) {
        end(theirs.error(), PeerProcess::alive);
        return;
    }
    come_up(std::move(*theirs));
}

void Link::come_up(RingMemory theirs) {
    NEXAR_ASSERT(state_ == State::handshaking);
    theirs_ = std::move(theirs);
    own_.close_descriptor();
    writer_ = RingWriter(own_.ring(), own_.ring_bytes(), &theirs_.control().taken);
    reader_ = RingReader(theirs_.ring(), theirs_.ring_bytes());
    state_ = State::up;
    if (const auto peer = peer_credentials(socket_.number()); peer) {
        process_ = watch_process(peer->process);
        life_ = ProcessLife(peer->process);
        carrier_->watch_process_of(*this);
    }
    carrier_->came_up(*this);
    emit(port::Up{.link = this, .dialed = start_.dialed});
    rearm();
    touch();
}

void Link::give_up() {
    given_up_ = true;
    touch();
}

void Link::on_time(TimePoint now) {
    if (state_ == State::handshaking) {
        if (given_up_) {
            end(Error(Errc::cancelled, "this side gave up the link"), PeerProcess::alive);
        } else if (now >= start_.handshake_until) {
            end(Error(Errc::timed_out,
                      fmt::format(
                          "the peer did not complete the handshake within {} s",
                          std::chrono::duration<double>(options_->handshake_timeout).count())),
                PeerProcess::alive);
        } else if (now >= hello_at_) {
            if (const auto said = say_hello(); !said) end(said.error(), PeerProcess::alive);
        }
    } else if (is_up() && now >= linger_until_) {
        end(Error(Errc::link_closed, "this side closed the link"), PeerProcess::alive);
    }
}

// The socket.

void Link::on_socket() {
    Message message;
    for (int i = 0; i < kMessagesPerLook && !has_ended(); ++i) {
        switch (receive_message(socket_.number(), message)) {
            case Received::nothing:
                return;
            case Received::closed:
                on_hang_up();
                return;
            case Received::message:
                break;
        }
        if (state_ == State::handshaking) {
            take_answer(message);
        } else if (message.size != 1 || message.descriptor_count != 0) {  // not a bell
            take_share(message);
            if (end_if_failed()) return;
        }
    }
    carrier_->look_at_sockets_ = true;
}

void Link::on_hang_up() {
    if (state_ == State::handshaking) {
        end(Error(Errc::link_closed, "the peer closed its socket during the handshake"),
            PeerProcess::alive);
        return;
    }
    // What the peer has written is complete. The bound is for a peer that only closed its socket.
    const std::uint64_t most = reader_.read() + reader_.size();
    while (!has_ended() && reader_.read() < most && reader_.arrived()) take_records();
    if (has_ended()) return;
    if (theirs_.control().ended.load(std::memory_order_acquire) != 0) {
        end(peer_closed(), PeerProcess::alive);
        return;
    }
    end(Error(Errc::timed_out, "the peer's process has ended"), PeerProcess::gone);
}

Error Link::peer_closed() const {
    const Control& control = theirs_.control();
    std::array<char, kMaxReasonBytes> text{};
    std::size_t size = 0;
    if (control.ended.load(std::memory_order_acquire) != 0) {
        size = std::min<std::size_t>(
            *const_cast<const volatile std::uint32_t*>(&control.reason_bytes), text.size());
        std::memcpy(text.data(), control.reason.data(), size);
    }
    const std::string_view reason(text.data(), size);
    return {
        Errc::link_closed,
        fmt::format("the peer closed the link{}",
                    reason.empty() ? std::string() : fmt::format(": \"{}\"", printable(reason)))};
}

// The end.

bool Link::end_if_failed() {
    if (has_ended()) return true;
    if (!failure_ && writer_.broken()) violated("claims to have read what was never written");
    const auto reason = std::exchange(failure_, std::nullopt);
    if (!reason) return false;
    close_reason_ = name(reason->code());
    end(*reason, PeerProcess::alive);
    return true;
}

void Link::publish_end(std::string_view reason) noexcept {
    if (!own_) return;
    Control& control = own_.control();
    const std::size_t size = std::min(reason.size(), control.reason.size());
    std::memcpy(control.reason.data(), reason.data(), size);
    control.reason_bytes = static_cast<std::uint32_t>(size);
    control.taken.store(reader_.read(), std::memory_order_release);
    control.ended.store(1, std::memory_order_release);
    // To find room in a ring, this side would look at the peer's memory.
    if (theirs_ && !dropped_ && writer_.has_room(0)) put(RecordKind::goodbye, 0, 0);
}

void Link::abandon_at_exit() noexcept {
    if (state_ != State::down) publish_end(close_reason_);
}

void Link::end(const Error& reason, PeerProcess process) {
    NEXAR_ASSERT(state_ != State::down);
    port::Down down{.reason = reason, .peer_gone = process == PeerProcess::gone};
    if (state_ != State::handshaking) {
        std::vector<OutStream*> sending;
        sending.reserve(outs_.size());
        for (const auto& [id, stream] : outs_) sending.push_back(stream.get());
        std::ranges::sort(sending, {},
                          [](const OutStream* stream) { return stream->id().value(); });
        for (OutStream* stream : sending) settle(*stream, port::SendOutcome::link_lost);
    }
    if (is_up()) {
        down.rests = take_rests();
        for (std::size_t i = 0; i < port::kLanes; ++i) down.untaken[i] = untaken(i);
        writer_.look();
        collect_unconfirmed(down.unconfirmed);
    }
    publish_end(close_reason_);
    carrier_->detach(*this);
    state_ = State::down;
    reader_ = RingReader();
    writer_ = RingWriter();
    own_ = RingMemory();
    theirs_ = RingMemory();
    socket_ = Descriptor();
    process_ = Descriptor();
    life_ = ProcessLife();
    waits_for_ = 0;
    for (OutLane& lane : lanes_out_) lane.queue.clear();
    for (InLane& lane : lanes_in_) lane.drop_parked();
    ins_.clear();
    emit(std::move(down));
}

}  // namespace nexar::shm
