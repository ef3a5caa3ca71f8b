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
    if (transfers_ != nullptr && transfers_->link_ != nullptr) transfers_->link_->cancel(id_);
}

void OutStream::wake() {
    if (transfers_ != nullptr && transfers_->link_ != nullptr) transfers_->link_->wake_source(id_);
}

void PeerTransfers::send(OutStream& out, const TransferName& name, port::Priority priority) {
    std::array<std::byte, wire::kBulkPreambleBytes> preamble{};
    const auto size = wire::encode(preamble_of(name), preamble);
    NEXAR_ASSERT(size.has_value() && *size == preamble.size());
    NEXAR_ASSERT(!out.sending());
    out.transfers_ = this;
    out.id_ = link_->send(out, {.priority = priority, .prefix = preamble});
    streams_out_.emplace(out.id_.value(), &out);
}

void PeerTransfers::on_released(const port::Released& released) {
    const auto found = streams_out_.find(released.stream.value());
    NEXAR_ASSERT(found != streams_out_.end());
    OutStream& out = *found->second;
    streams_out_.erase(found);
    out.transfers_ = nullptr;
    out.released(released.outcome);
}

void PeerTransfers::on_opened(port::StreamId id) {
    InStream& stream =
        *streams_in_.emplace(id.value(), std::make_unique<InStream>(*this, id)).first->second;
    if (violation_) {
        stream.refuse();
    } else {
        link_->receive(id, stream);
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
    }
    if (!stream.name_) {
        return Error(Errc::protocol_violation,
                     "the peer opened a payload stream without naming its payload");
    }
    const TransferName& name = *stream.name_;
    NEXAR_TRY_VALUE(awaited, all_->owner_->look_up(*peer_, name));
    switch (awaited.state) {
        case Awaited::State::over:
            stream.refuse();
            return {};
        case Awaited::State::not_yet:
            stream.early_ = early_.emplace(name, &stream).second;
            if (!stream.early_) return sent_twice(name.kind);
            return {};
        case Awaited::State::known:
            if (awaited.receiver->stream != nullptr) return sent_twice(name.kind);
            attach(stream, *awaited.receiver);
            return {};
    }
    return {};
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
        all_->rests_due_.emplace_back(this, stream.id_);
    } else if (link_ != nullptr) {
        link_->open_window(stream.id_);
        link_->wake_sink(stream.id_);
    }
}

void PeerTransfers::wake(InStream& stream) {
    if (link_ != nullptr) link_->wake_sink(stream.id_);
}

void PeerTransfers::refuse(InStream& stream) {
    if (stream.rest_) {
        all_->rests_due_.emplace_back(this, stream.id_);
    } else if (link_ != nullptr) {
        link_->refuse(stream.id_);
    }
}

/// Removes a stream from all tables. Returns its receiver, if it had one.
PayloadReceiver* PeerTransfers::forget(InStream& stream) {
    PayloadReceiver* const receiver = stream.receiver_;
    if (receiver != nullptr) receiver->stream = nullptr;
    if (stream.early_ && stream.name_) early_.erase(*stream.name_);
    streams_in_.erase(stream.id_.value());
    return receiver;
}

void PeerTransfers::on_finished(const port::Finished& finished) {
    const auto found = streams_in_.find(finished.stream.value());
    NEXAR_ASSERT(found != streams_in_.end());
    const bool refused = found->second->refused_;
    if (PayloadReceiver* const receiver = forget(*found->second)) {
        receiver->finished(finished.bytes - wire::kBulkPreambleBytes);
    } else if (!refused) {
        cut_off(Error(Errc::protocol_violation,
                      "the peer ended a payload stream before it sent the header"));
    }
}

void PeerTransfers::on_aborted(port::StreamId id) {
    const auto found = streams_in_.find(id.value());
    NEXAR_ASSERT(found != streams_in_.end());
    if (PayloadReceiver* const receiver = forget(*found->second)) receiver->aborted();
}

/// Offers a rest to its receiver, as its link would have done.
void PeerTransfers::offer_rest(port::StreamId id) {
    const auto found = streams_in_.find(id.value());
    if (found == streams_in_.end()) return;
    InStream& stream = *found->second;
    if (stream.refused_) return on_aborted(id);
    if (!stream.rest_) return;
    const port::ConstBytes bytes(stream.rest_->bytes);
    const std::uint64_t offset = stream.rest_->offset;
    stream.rest_taken_ +=
        stream.write(offset + stream.rest_taken_, bytes.subspan(stream.rest_taken_));
    if (stream.rest_taken_ != bytes.size()) return;
    on_finished({.stream = id, .bytes = offset + bytes.size()});
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
