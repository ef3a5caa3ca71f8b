#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "engine/engine.hpp"
#include "wire/codec.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

/// Frames of the control lane: whole in themselves.
class Engine::ControlTaker final : public LaneReader::Taker {
public:
    ControlTaker(Engine& engine, Peer& peer) noexcept : engine_(&engine), peer_(&peer) {}

    Result<std::uint64_t> frame(const wire::FrameHeader& header, port::ConstBytes body) override {
        if (peer_->violation) return std::uint64_t{0};
        switch (header.type) {
            case wire::FrameType::credit: {
                NEXAR_TRY_VALUE(credit, wire::decode_body<wire::Credit>(header, body));
                NEXAR_TRY(engine_->on_credit(*peer_, credit.message));
                break;
            }
            case wire::FrameType::grant: {
                NEXAR_TRY_VALUE(grant, wire::decode_body<wire::Grant>(header, body));
                NEXAR_TRY(engine_->on_grant(*peer_, grant.message));
                break;
            }
            case wire::FrameType::error_report: {
                NEXAR_TRY_VALUE(report, wire::decode_body<wire::ErrorReport>(header, body));
                engine_->on_report(*peer_, report.message);
                break;
            }
            case wire::FrameType::withdraw: {
                NEXAR_TRY_VALUE(withdraw, wire::decode_body<wire::Withdraw>(header, body));
                NEXAR_TRY(engine_->on_withdraw(*peer_, withdraw.message));
                break;
            }
            case wire::FrameType::abort: {
                NEXAR_TRY_VALUE(abort, wire::decode_body<wire::Abort>(header, body));
                NEXAR_TRY(engine_->hear_abort(abort.message, peer_));
                break;
            }
            default:
                return Error(Errc::protocol_violation,
                             fmt::format("a frame of type {} came where none is due",
                                         wire::name(header.type)));
        }
        return std::uint64_t{0};
    }

    port::Bytes payload_place(std::size_t /*bytes*/) override { return {}; }
    void payload_came(std::size_t /*bytes*/) override {}
    void violated(const Error& error) override { engine_->violated(*peer_, error); }

private:
    Engine* engine_;
    Peer* peer_;
};

/// Message headers, and the payloads of small messages behind them.
class Engine::EagerTaker final : public LaneReader::Taker {
public:
    EagerTaker(Engine& engine, Peer& peer) noexcept : engine_(&engine), peer_(&peer) {}

    Result<std::uint64_t> frame(const wire::FrameHeader& header, port::ConstBytes body) override {
        if (peer_->violation) return std::uint64_t{0};
        of_collective_ = header.type == wire::FrameType::collective;
        if (of_collective_ || header.type == wire::FrameType::collective_mismatch ||
            header.type == wire::FrameType::collective_abort) {
            auto follows = engine_->on_collective(*peer_, header, body);
            engine_->offer_rests();
            return follows;
        }
        if (header.type == wire::FrameType::bulk) {
            NEXAR_TRY_VALUE(bulk, wire::decode_body<wire::BulkHeader>(header, body));
            NEXAR_TRY(engine_->on_header(*peer_, bulk.message, true));
            return std::uint64_t{0};
        }
        if (header.type == wire::FrameType::context_begin) {
            NEXAR_TRY_VALUE(begun, wire::decode_body<wire::ContextBegin>(header, body));
            NEXAR_TRY(engine_->on_context_begin(*peer_, begun.message));
            return std::uint64_t{0};
        }
        if (header.type == wire::FrameType::context_end) {
            NEXAR_TRY_VALUE(ended, wire::decode_body<wire::ContextEnd>(header, body));
            NEXAR_TRY(engine_->on_context_end(*peer_, ended.message));
            return std::uint64_t{0};
        }
        NEXAR_TRY_VALUE(eager, wire::decode_body<wire::EagerHeader>(header, body));
        NEXAR_TRY_VALUE(message, engine_->on_header(*peer_, eager.message, false));
        // Without memory for it the payload is not for anybody, and not to be taken for complete.
        if (peer_->violation) return *peer_->violation;
        message_ = message;
        return eager.message.size;
    }

    port::Bytes payload_place(std::size_t bytes) override {
        if (of_collective_) return engine_->collectives_.payload_place(*peer_);
        if (message_ == nullptr || message_->discard) return {};
        if (message_->direct) return message_->receiver->region(message_->received, bytes);
        return MessageStore::storage(*message_).subspan(
            static_cast<std::size_t>(message_->received));
    }

    void payload_came(std::size_t bytes) override {
        if (of_collective_) {
            engine_->collectives_.payload_came(*peer_, bytes);
            engine_->offer_rests();
            return;
        }
        if (message_ == nullptr) return;
        message_->received += bytes;
        if (message_->received == message_->bytes) {
            engine_->payload_complete(*std::exchange(message_, nullptr));
        }
    }

    void violated(const Error& error) override { engine_->violated(*peer_, error); }

private:
    Engine* engine_;
    Peer* peer_;
    InMessage* message_ = nullptr;  // whose payload is coming
    bool of_collective_ = false;    // the payload that is coming
};

void Engine::handle(const port::LinkEvent& event) {
    if (const auto* up = std::get_if<port::Up>(&event.what)) {
        on_up(event.link, *up);
        return;
    }
    const auto found = by_link_.find(event.link);
    if (found == by_link_.end()) return;  // of a link that was not wanted
    Peer& peer = *found->second;
    if (const auto* down = std::get_if<port::Down>(&event.what)) {
        by_link_.erase(found);
        peer.link = nullptr;
        keep_rests(peer, down->rests);
        on_down(peer, down->reason);
        // The link may have been asked to offer them, and did not come to it.
        for (const port::Rest& rest : down->rests) rests_due_.emplace_back(&peer, rest.stream);
    } else if (const auto* opened = std::get_if<port::Opened>(&event.what)) {
        on_opened(peer, opened->stream);
    } else if (const auto* finished = std::get_if<port::Finished>(&event.what)) {
        on_finished(peer, *finished);
    } else if (const auto* aborted = std::get_if<port::Aborted>(&event.what)) {
        on_aborted(peer, aborted->stream);
    } else if (const auto* released = std::get_if<port::Released>(&event.what)) {
        on_released(peer, *released);
    } else if (const auto* writable = std::get_if<port::Writable>(&event.what)) {
        if (writable->lane == port::Lane::control) flush_control(peer);
        if (writable->lane == port::Lane::rpc) calls_.writable(peer);
        if (writable->lane == port::Lane::eager) {
            peer.eager_full = false;
            drain(peer);
            collectives_.drain(peer);
        }
    }
    offer_rests();
}

void Engine::on_up(port::LinkId id, const port::Up& up) {
    NEXAR_ASSERT(!up.joiner && id == up.link->id());
    Peer* const peer = awaited(up.link->peer().node);
    if (peer == nullptr) {
        up.link->close("not a member, or there is a link already");
        return;
    }
    connect(*peer, *up.link, nullptr);
}

/// The peer of that name, if a link to it is welcome.
Peer* Engine::awaited(const NodeId& node) noexcept {
    const auto found =
        std::ranges::find_if(peers_, [&](const auto& peer) { return peer->node == node; });
    if (found == peers_.end() || (*found)->link != nullptr || (*found)->lost || closing_) {
        return nullptr;
    }
    return found->get();
}

bool Engine::take_over(port::Link& link, std::unique_ptr<LaneReader>& control) {
    Peer* const peer = awaited(link.peer().node);
    if (peer == nullptr) return false;
    connect(*peer, link, std::move(control));
    return true;
}

void Engine::connect(Peer& peer, port::Link& link, std::unique_ptr<LaneReader> control) {
    peer.link = &link;
    by_link_.emplace(link.id(), &peer);
    begin_lanes(peer, std::move(control));
    if (abort_) send_control(peer, *abort_);
    drain(peer);
    calls_.drain(peer);
    collectives_.drain(peer);
}

void Engine::give_up(const NodeId& node, const Error& reason) {
    if (Peer* const peer = awaited(node)) on_down(*peer, reason);
}

void Engine::want(Peer& peer) {
    if (peer.link != nullptr || std::exchange(peer.wanted, true)) return;
    wanted_.push_back(peer.node);
}

std::optional<NodeId> Engine::poll_wanted() {
    if (wanted_.empty()) return std::nullopt;
    const NodeId node = wanted_.front();
    wanted_.pop_front();
    return node;
}

void Engine::begin_lanes(Peer& peer, std::unique_ptr<LaneReader> control) {
    constexpr std::array<std::pair<port::Lane, wire::Lane>, port::kLanes> kNames{
        {{port::Lane::control, wire::Lane::control},
         {port::Lane::rpc, wire::Lane::rpc},
         {port::Lane::eager, wire::Lane::eager}}};
    peer.control_taker = std::make_unique<ControlTaker>(*this, peer);
    peer.rpc_taker = calls_.make_taker(peer);
    peer.eager_taker = std::make_unique<EagerTaker>(*this, peer);
    const bool greeted = control != nullptr;
    if (greeted) {
        control->hand_to(*peer.control_taker);
        peer.readers.push_back(std::move(control));
    }
    for (const auto& [lane, name] : kNames) {
        if (lane == port::Lane::control && greeted) continue;
        std::array<std::byte, wire::kPreambleBytes> bytes{};
        const auto size =
            wire::encode(wire::Preamble{.lane = name, .context = {}, .sequence = {}}, bytes);
        NEXAR_ASSERT(size.has_value() && *size == bytes.size());
        const port::ConstBytes piece(bytes);
        const bool written = peer.link->write(lane, {&piece, 1});
        NEXAR_ASSERT(written, "a new lane has room");
        LaneReader::Taker& taker = lane == port::Lane::eager ? *peer.eager_taker
                                   : lane == port::Lane::rpc ? *peer.rpc_taker
                                                             : *peer.control_taker;
        peer.readers.push_back(std::make_unique<LaneReader>(name, taker));
        peer.link->receive(lane, *peer.readers.back());
    }
}

template <class Message>
void Engine::send_control(Peer& peer, const Message& message) {
    if (peer.link == nullptr || peer.violation) return;
    std::vector<std::byte> frame = wire::to_bytes(message);
    const port::ConstBytes piece(frame);
    if (peer.control_backlog.empty() && peer.link->write(port::Lane::control, {&piece, 1})) return;
    peer.control_backlog.push_back(std::move(frame));
    if (peer.control_backlog.size() > options_.max_control_backlog) {
        violated(peer, Error(Errc::limit_exceeded, "it does not read what is said to it"));
    }
}

template void Engine::send_control(Peer&, const wire::ErrorReport&);
template void Engine::send_control(Peer&, const wire::Abort&);
template void Engine::send_control(Peer&, const wire::Grant&);
template void Engine::send_control(Peer&, const wire::Credit&);
template void Engine::send_control(Peer&, const wire::Withdraw&);

void Engine::flush_control(Peer& peer) {
    while (!peer.control_backlog.empty()) {
        const port::ConstBytes piece(peer.control_backlog.front());
        if (!peer.link->write(port::Lane::control, {&piece, 1})) return;
        peer.control_backlog.pop_front();
    }
}

void Engine::on_report(Peer& peer, const wire::ErrorReport& report) {
    const std::string text = printable(report.text, wire::kMaxReportTextBytes);
    NEXAR_LOG_WARNING("node {} reports {}: {}", peer.node.to_hex(), name(report.code), text);
    peer.farewell = Error(Errc::link_closed, fmt::format("it left: {}", text));
}

std::optional<std::pair<NodeId, Error>> Engine::casualty() const {
    for (const auto& peer : peers_) {
        const std::optional<Error>& lost = peer->lost;
        if (!lost) continue;
        const bool orderly = lost->code() == Errc::link_closed && !peer->farewell;
        if (!orderly) return std::pair(peer->node, *lost);
    }
    return std::nullopt;
}

void Engine::violated(Peer& peer, const Error& error) {
    if (peer.violation || peer.link == nullptr) return;
    NEXAR_LOG_WARNING("node {} is cut off: {}", peer.node.to_hex(), error.what());
    peer.violation = Error(
        error.code(), fmt::format("node {} was cut off: {}", peer.node.to_hex(), error.cause()));
    peer.link->close(error.cause());
}

/// Says once that a wait for any source can only be ended by this rank itself: it may look like a
/// hang.
void Engine::warn_if_alone(Context& context) {
    if (context.alone_told || context.pairs.size() == 1) return;
    const auto left = [](const Pair* pair) { return pair != nullptr && !pair->peer->lost; };
    if (std::ranges::any_of(context.pairs, left)) return;
    context.alone_told = true;
    NEXAR_LOG_WARNING(
        "rank {} waits for a message from any source, and every other rank has left: "
        "only this rank itself can still send one",
        context.me.value());
}

void Engine::end_receives_of(Context& context, const Pair& pair, const Error& reason) {
    // A peer that left in good order need not be who the others wait for; when it was the last
    // one, this rank itself may still send.
    const bool all = reason.code() != Errc::link_closed;
    bool any_source_waits = false;
    const auto concerned = [&](const Pattern& pattern) {
        return pattern.source ? *pattern.source == pair.rank : all;
    };
    for (PostedReceive* const posted : context.matcher.all_posted()) {
        any_source_waits = any_source_waits || !posted->pattern.source;
        if (!concerned(posted->pattern)) continue;
        context.matcher.remove(*posted);
        fail(static_cast<ReceiveOperation&>(*posted),
             reason.within({.rank = public_rank(pair.rank), .operation = "receive"}));
    }
    for (ProbeOperation* at = context.probes.first(); at != nullptr;) {
        ProbeOperation& probe = *at;
        at = decltype(context.probes)::after(probe);
        any_source_waits = any_source_waits || !probe.pattern.source;
        if (!concerned(probe.pattern)) continue;
        context.probes.erase(probe);
        fail(probe, reason.within({.rank = public_rank(pair.rank), .operation = "probe"}));
    }
    if (any_source_waits && !all) warn_if_alone(context);
}

void Engine::on_down(Peer& peer, const Error& reason) {
    if (peer.lost) return;
    // The link only knows that this side closed it.
    const Error told = closing_ ? Error(Errc::closed, "the node was closed")
                                : peer.violation.value_or(peer.farewell.value_or(reason));
    peer.lost = told;
    NEXAR_ASSERT(peer.streams_out.empty() && peer.collectives.streams_out.empty(),
                 "a link that goes down releases everything first");
    calls_.down(peer, told);
    collectives_.down(peer, told);
    auto unanswered = std::exchange(peer.announced, {});
    unanswered.merge(std::exchange(peer.asking, {}));
    for (const auto& [name, send] : unanswered) {
        if (send == nullptr) continue;  // ended without the answer
        send->state = SendOperation::State::ended;
        fail(*send, told.within({.rank = public_rank(send->to), .operation = "send"}));
    }
    peer.taken_back.clear();
    peer.given_up.clear();
    // The link uses no sink any more.
    for (const auto& [id, stream] : peer.streams_in) {
        if (stream->message != nullptr) stream->message->stream = nullptr;
    }
    std::erase_if(peer.streams_in, [](const auto& entry) { return !entry.second->rest; });
    peer.early_streams.clear();
    peer.readers.clear();
    peer.control_backlog.clear();
    while (InMessage* message = peer.incomplete.first()) {
        withdraw(*message,
                 told.within({.rank = public_rank(message->source), .operation = "receive"}));
    }
    while (Pair* blocked = peer.blocked.pop_front()) blocked->blocked = false;
    std::erase_if(peer.pairs, [](const auto& entry) { return entry.second->ended; });
    peer.last_pair = nullptr;
    for (const auto& [id, pair] : peer.pairs) {
        while (SendOperation* send = pair->waiting.pop_front()) {
            send->state = SendOperation::State::ended;
            fail(*send, told.within({.rank = public_rank(pair->rank), .operation = "send"}));
        }
        if (pair->context != nullptr) end_receives_of(*pair->context, *pair, told);
    }
}

}  // namespace nexar::engine
