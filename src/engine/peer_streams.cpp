// The payload streams between this node and a peer.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/try.hpp"
#include "engine/peer_transfers.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

void OutStream::cancel() {
    if (transfers_ == nullptr) return;
    cancelled_ = true;
    if (link_ != nullptr) link_->link->cancel(id_);
}

void OutStream::wake() {
    if (link_ != nullptr) link_->link->wake_source(id_);
}

void PeerTransfers::send(OutStream& out, const TransferName& name, port::Priority priority) {
    NEXAR_ASSERT(!out.sending());
    out.transfers_ = this;
    out.name_ = name;
    out.priority_ = priority;
    out.attempt_ = 0;
    out.cancelled_ = false;
    begin(out);
}

void PeerTransfers::begin(OutStream& out) {
    std::array<std::byte, wire::kBulkPreambleBytes> preamble{};
    wire::Preamble name = preamble_of(out.name_);
    name.attempt = out.attempt_;
    const auto size = wire::encode(name, preamble);
    NEXAR_ASSERT(size.has_value() && *size == preamble.size());
    out.link_ = streams_on_;
    out.id_ = streams_on_->link->send(out, {.priority = out.priority_, .prefix = preamble});
    streams_on_->streams_out.emplace(out.id_.value(), &out);
}

void PeerTransfers::on_released(PeerLink& link, const port::Released& released) {
    const auto found = link.streams_out.find(released.stream.value());
    NEXAR_ASSERT(found != link.streams_out.end());
    OutStream& out = *found->second;
    link.streams_out.erase(found);
    out.link_ = nullptr;
    if (gone_) {
        finish(out, port::SendOutcome::link_lost);
        return end_when_released();
    }
    const bool lost = released.outcome == port::SendOutcome::link_lost;
    if (lost && links_.size() > 1 && !violation_ && !closed_) {
        link.stranded.push_back(&out);
    } else {
        finish(out, released.outcome);
    }
}

void PeerTransfers::on_datagram(port::ConstBytes bytes) {
    if (violation_ || gone_) return;
    if (const auto taken = all_->owner_->on_datagram(*peer_, bytes); !taken) {
        cut_off(taken.error());
    }
}

void PeerTransfers::finish(OutStream& out, port::SendOutcome outcome) {
    out.transfers_ = nullptr;
    // The peer may have had all bytes before the first link broke.
    if (out.attempt_ != 0 && outcome == port::SendOutcome::refused) {
        outcome = port::SendOutcome::delivered;
    } else if (out.attempt_ != 0 && outcome == port::SendOutcome::cancelled) {
        outcome = port::SendOutcome::cancelled_late;
    }
    out.released(outcome);
}

void PeerTransfers::on_opened(PeerLink& link, port::StreamId id) {
    InStream& stream =
        *link.streams_in.emplace(id.value(), std::make_unique<InStream>(*this, link, id))
             .first->second;
    if (violation_ || gone_) {
        stream.refuse();
    } else {
        link.link->receive(id, stream);
    }
}

/// Called when the preamble is complete.
void PeerTransfers::named(InStream& stream) {
    const auto placed = place(stream);
    if (placed) return;
    cut_off(placed.error());
    stream.refuse();
}

/// Finds the receiver of a stream whose name is known.
Result<void> PeerTransfers::place(InStream& stream) {
    if (const auto preamble = wire::decode_preamble(stream.preamble_)) {
        stream.name_ = name_of(*preamble);
        stream.attempt_ = preamble->attempt;
    }
    if (!stream.name_) {
        return Error(Errc::protocol_violation,
                     "the peer opened a payload stream without naming its payload");
    }
    const TransferName& name = *stream.name_;
    NEXAR_TRY_VALUE(awaited, name.kind == TransferKind::lane ? look_up_tail(name)
                                                             : all_->owner_->look_up(*peer_, name));
    switch (awaited.state) {
        case Awaited::State::over:
            stream.refuse();
            return {};
        case Awaited::State::not_yet:
            return place_early(stream, name);
        case Awaited::State::known:
            return attach_or_replace(stream, *awaited.receiver, name.kind);
    }
    return {};
}

/// A second stream with one name is allowed if the first one's link broke. Refuses the older of the
/// two, or the newer one if all bytes of the older one have arrived; this side may not know yet
/// that the link broke, and both may arrive in any order. Returns whether `stream` is used.
Result<bool> PeerTransfers::supersede(InStream& stream, InStream& known, TransferKind kind) {
    if (known.link_ == stream.link_ || known.attempt_ == stream.attempt_) return sent_twice(kind);
    const bool complete =
        known.rest_ || (known.receiver_ != nullptr && known.receiver_->complete());
    const bool newer = stream.attempt_ > known.attempt_ && !complete;
    InStream& older = newer ? known : stream;
    older.early_ = false;
    older.receiver_ = nullptr;
    older.refuse();
    return newer;
}

Result<void> PeerTransfers::place_early(InStream& stream, const TransferName& name) {
    InStream*& known = early_[name];
    bool used = true;
    if (known != nullptr) {
        NEXAR_TRY_VALUE(newer, supersede(stream, *known, name.kind));
        used = newer;
    }
    stream.early_ = used;
    if (used) known = &stream;
    return {};
}

Result<void> PeerTransfers::attach_or_replace(InStream& stream, PayloadReceiver& receiver,
                                              TransferKind kind) {
    if (receiver.stream != nullptr) {
        NEXAR_TRY_VALUE(newer, supersede(stream, *receiver.stream, kind));
        if (!newer) return {};
    }
    attach(stream, receiver);
    return {};
}

Result<Awaited> PeerTransfers::look_up_tail(const TransferName& name) {
    constexpr std::size_t kMostTails = 1024;
    const auto lane = static_cast<port::Lane>(static_cast<std::uint64_t>(name.lane) - 1);
    const auto same = [&](const auto& one) {
        return one->lane() == lane && one->position() == name.number;
    };
    auto found = std::ranges::find_if(tails_in_, same);
    if (found == tails_in_.end()) {
        if (tails_in_.size() == kMostTails) {
            return Error(Errc::limit_exceeded, "the peer continues too many lanes at once");
        }
        tails_in_.push_back(std::make_unique<LaneTailIn>(*this, lane, name.number));
        found = tails_in_.end() - 1;
    }
    return Awaited{.state = Awaited::State::known, .receiver = found->get()};
}

void PeerTransfers::attach(InStream& stream, PayloadReceiver& receiver) {
    stream.receiver_ = &receiver;
    receiver.stream = &stream;
    receiver.attached();
}

void PeerTransfers::expect(const TransferName& name, PayloadReceiver& receiver) {
    if (early_.empty()) return;
    const auto found = early_.find(name);
    if (found == early_.end()) return;
    InStream& stream = *found->second;
    early_.erase(found);
    stream.early_ = false;
    attach(stream, receiver);
}

void PeerTransfers::refuse_early(const TransferName& name) {
    const auto found = early_.find(name);
    if (found == early_.end()) return;
    InStream& stream = *found->second;
    early_.erase(found);
    stream.early_ = false;
    stream.refuse();
}

void PeerTransfers::refuse_early(TransferKind kind, ContextId context) {
    std::erase_if(early_, [&](const auto& entry) {
        if (entry.first.kind != kind || entry.first.context != context) return false;
        entry.second->early_ = false;
        entry.second->refuse();
        return true;
    });
}

void PeerTransfers::open(InStream& stream) {
    if (stream.rest_) {
        all_->rests_due_.emplace_back(this, stream.rest_number_);
    } else if (stream.link_ != nullptr) {
        stream.link_->link->open_window(stream.id_);
        stream.link_->link->wake_sink(stream.id_);
    }
}

void PeerTransfers::wake(InStream& stream) {
    if (stream.link_ != nullptr) stream.link_->link->wake_sink(stream.id_);
}

void PeerTransfers::refuse(InStream& stream) {
    if (stream.rest_) {
        all_->rests_due_.emplace_back(this, stream.rest_number_);
    } else if (stream.link_ != nullptr) {
        stream.link_->link->refuse(stream.id_);
    }
}

/// Removes a stream from all tables. Returns its receiver, if it had one.
PayloadReceiver* PeerTransfers::forget(InStream& stream) {
    PayloadReceiver* const receiver = stream.receiver_;
    if (receiver != nullptr) {
        receiver->stream = nullptr;
        receiver->streamed = 0;
    }
    if (stream.early_ && stream.name_) early_.erase(*stream.name_);
    if (stream.link_ == nullptr) {
        rests_.erase(stream.rest_number_);
    } else {
        stream.link_->streams_in.erase(stream.id_.value());
    }
    return receiver;
}

void PeerTransfers::on_finished(PeerLink& link, const port::Finished& finished) {
    const auto found = link.streams_in.find(finished.stream.value());
    NEXAR_ASSERT(found != link.streams_in.end());
    this->finished(*found->second, finished.bytes);
}

void PeerTransfers::finished(InStream& stream, std::uint64_t bytes) {
    const bool refused = stream.refused_;
    if (PayloadReceiver* const receiver = forget(stream)) {
        receiver->finished(bytes - wire::kBulkPreambleBytes);
    } else if (!refused) {
        cut_off(Error(Errc::protocol_violation,
                      "the peer ended a payload stream before it sent the header"));
    }
}

void PeerTransfers::on_aborted(PeerLink& link, port::StreamId id) {
    const auto found = link.streams_in.find(id.value());
    NEXAR_ASSERT(found != link.streams_in.end());
    aborted(*found->second);
}

void PeerTransfers::aborted(InStream& stream) {
    if (PayloadReceiver* const receiver = forget(stream)) receiver->aborted();
}

/// Offers a rest to its receiver, as its link would have done.
void PeerTransfers::offer_rest(std::uint64_t number) {
    const auto found = rests_.find(number);
    if (found == rests_.end()) return;
    InStream& stream = *found->second;
    if (stream.refused_) return aborted(stream);
    if (!stream.rest_) return;
    const port::ConstBytes bytes(stream.rest_->bytes);
    const std::uint64_t offset = stream.rest_->offset;
    stream.rest_taken_ +=
        stream.write(offset + stream.rest_taken_, bytes.subspan(stream.rest_taken_));
    if (stream.rest_taken_ != bytes.size()) return;
    finished(stream, offset + bytes.size());
}

Error PeerTransfers::sent_twice(TransferKind kind) {
    return {Errc::protocol_violation,
            fmt::format("the peer sent the payload of one {} twice", noun(kind))};
}

void PeerTransfers::check_whole(std::uint64_t announced, std::uint64_t came) {
    if (came == announced) return;
    cut_off(Error(Errc::protocol_violation,
                  fmt::format("the peer ended a payload of {} bytes after {}", announced, came)));
}

}  // namespace nexar::engine
