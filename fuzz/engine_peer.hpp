#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine_collectives.hpp"
#include "engine_script.hpp"
#include "support/fake_link.hpp"
#include "support/said.hpp"

namespace nexar::fuzz {

/// The byte at `offset` of every payload of `size` bytes.
inline std::byte content(std::uint64_t size, std::uint64_t offset) {
    return static_cast<std::byte>(size * 31 + offset * 7);
}

inline std::vector<std::byte> payload(std::uint64_t size, std::uint64_t from, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = content(size, from + i);
    return made;
}

/// The peer. It sends what the input tells it to: usually valid frames in order, or anything.
class ScriptedPeer {
public:
    /// `turn` lets the engine handle its events.
    ScriptedPeer(Script& script, testing::FakeLink& link, std::function<void()> turn)
        : script_(&script), link_(&link), turn_(std::move(turn)) {}

    /// True when the input has sent raw bytes, so payloads may have any content.
    bool said_anything() const noexcept { return anything_; }

    void step(Act act) {
        switch (act) {
            case Act::raw: {
                anything_ = true;
                const auto lane = static_cast<Lane>(script_->byte() % port::kLanes);
                link_->arrive(lane, script_->bytes(script_->byte()));
                return;
            }
            case Act::eager:
            case Act::bulk:
                header(act == Act::bulk);
                return;
            case Act::payload: {
                const auto bytes = std::min<std::uint64_t>(script_->word(), eager_left_);
                link_->arrive(Lane::eager, payload(eager_size_, eager_size_ - eager_left_,
                                                   static_cast<std::size_t>(bytes)));
                eager_left_ -= bytes;
                return;
            }
            case Act::open: {
                const ContextId named = script_->context();
                open(wire::Lane::bulk, named, sequence(named, false), 600);
                return;
            }
            case Act::bytes: {
                auto& [id, stream] = *pick(streams_);
                const auto piece = payload(stream.size, stream.sent, script_->word() % 3000);
                stream.sent += link_->arrive(port::StreamId(id), piece);
                return;
            }
            case Act::finish:
                link_->finish(port::StreamId(pick(streams_)->first));
                return;
            case Act::reset:
                link_->reset(port::StreamId(pick(streams_)->first));
                return;
            case Act::begin: {
                const ContextId named = script_->context();
                begin(named, script_->byte());
                return;
            }
            case Act::leave: {
                const ContextId named = script_->context();
                if (eager_left_ != 0) return;
                begun_.erase(named);
                link_->arrive(Lane::eager,
                              testing::said(wire::ContextEnd{.context = named, .collectives = 2}));
                return;
            }
            case Act::part:
                part();
                return;
            case Act::flow: {
                const ContextId named = script_->context();
                const std::uint64_t number = sequence(parts_of(named), false);
                const Shape shape = script_shape(*script_);
                open(wire::Lane::collective, named, number,
                     std::max<std::uint64_t>(1, shape.bytes()));
                return;
            }
            case Act::abort:
            case Act::mismatch:
                failure(act == Act::abort);
                return;
            default:
                control(act);
        }
    }

private:
    using Lane = port::Lane;
    using MessageNumber = std::pair<ContextId, std::uint64_t>;
    static constexpr std::size_t kMaxStreams = 16;

    struct Stream {
        std::uint64_t size = 0;  // of its payload, as the header said or will say
        std::uint64_t sent = 0;
    };

    void control(Act act) {
        if (act == Act::credit) {
            wire::Credit credit;
            credit.pool = static_cast<wire::CreditPool>(1 + script_->byte() % 4);
            const ContextId named = script_->context();
            if (credit.pool != wire::CreditPool::shared) credit.context = named;
            credit.payload_bytes = script_->word();
            credit.headers = std::max<std::uint32_t>(1, script_->byte());
            link_->arrive(Lane::control, testing::said(credit));
        } else if (act == Act::grant) {
            const ContextId named = script_->context();
            link_->arrive(Lane::control,
                          testing::said(wire::Grant{.context = named,
                                                    .sequence = Sequence(script_->byte())}));
        } else {
            const ContextId named = script_->context();
            const Sequence sequence(script_->byte());
            link_->arrive(Lane::control,
                          testing::said(wire::Withdraw{
                              .context = named,
                              .sequence = sequence,
                              .step = static_cast<wire::WithdrawStep>(1 + script_->byte() % 3)}));
        }
    }

    /// Introduces a communicator, with one wrong field or none.
    void begin(ContextId context, unsigned wrong) {
        if (eager_left_ != 0) return;
        begun_.insert(context);
        wire::ContextBegin made{
            .context = context, .origin = origin_of(context), .rank = Rank(1), .size = 2};
        if (wrong % 16 == 1) ++made.origin.creation;
        if (wrong % 16 == 2) ++made.origin.colour;
        if (wrong % 16 == 3) made.rank = Rank(0);
        if (wrong % 16 == 4) ++made.size;
        if (wrong % 16 == 5) made.origin.parent = context;
        link_->arrive(Lane::eager, testing::said(made));
    }

    void header(bool bulk) {
        if (eager_left_ != 0) return;  // the payload of the last header must come first
        wire::MessageHeader made;
        made.context = script_->context();
        made.sequence = Sequence(sequence(made.context, true));
        made.size = script_->word();
        const unsigned flags = script_->byte();
        if ((flags & 16U) == 0 && !begun_.contains(made.context)) begin(made.context, 0);
        made.tag = Tag(script_->byte() % 4);
        made.synchronous = (flags & 1U) != 0;
        made.from_reserve = (flags & 2U) != 0;
        if (bulk) {
            made.awaits_grant = (flags & 4U) != 0;
            // Sometimes too large for any receive.
            if ((flags & 8U) != 0) made.size = made.size << 32U;
            made.size =
                size_of(made.context, made.sequence.value(), std::max<std::uint64_t>(1, made.size));
            link_->arrive(Lane::eager, testing::said(wire::BulkHeader{made}));
            return;
        }
        made.size %= 5000;
        eager_size_ = eager_left_ = made.size;
        link_->arrive(Lane::eager, testing::said(wire::EagerHeader{made}));
    }

    void open(wire::Lane lane, ContextId named, std::uint64_t number, std::uint64_t proposed) {
        // A link does not admit more streams.
        if (link_->incoming() >= kMaxStreams) return;
        const port::StreamId stream = link_->open();
        if (script_->byte() % 4 != 0) turn_();
        const ContextId counted = lane == wire::Lane::bulk ? named : parts_of(named);
        streams_[stream.value()] = {.size = size_of(counted, number, proposed), .sent = 0};
        link_->arrive(stream, testing::said(wire::Preamble{
                                  .lane = lane, .context = named, .sequence = Sequence(number)}));
    }

    /// Messages of collectives have their own sequence numbers.
    static ContextId parts_of(ContextId context) { return ContextId(context.value() + kContexts); }

    std::uint64_t operation() {
        const unsigned which = script_->byte();
        return which == 255 ? ~std::uint64_t{0} : which % kNumbers;
    }

    /// A message of a collective, usually one that its schedule has.
    void part() {
        if (eager_left_ != 0) return;
        wire::CollectiveHeader made;
        made.context = script_->context();
        made.sequence = Sequence(sequence(parts_of(made.context), true));
        made.operation = operation();
        const Shape shape = script_shape(*script_);
        const unsigned flags = script_->byte();
        made.message = script_->byte() % 4;
        if ((flags & 16U) == 0 && !begun_.contains(made.context)) begin(made.context, 0);
        made.fingerprint = (flags & 8U) != 0 ? flags : fingerprint(shape, made.operation);
        made.from_reserve = (flags & 2U) != 0;
        made.size = shape.bytes() >> (flags / 32 % 4);
        if ((flags & 1U) != 0) {
            made.place = wire::PayloadPlace::stream;
            made.size = size_of(parts_of(made.context), made.sequence.value(),
                                std::max<std::uint64_t>(1, made.size));
        } else {
            eager_size_ = eager_left_ = made.size;
        }
        link_->arrive(Lane::eager, testing::said(made));
    }

    void failure(bool abort) {
        const ContextId named = script_->context();
        const std::uint64_t number = operation();
        const unsigned which = script_->byte();
        if (eager_left_ != 0) return;
        if (abort) {
            link_->arrive(Lane::eager, testing::said(wire::CollectiveAbort{.context = named,
                                                                           .operation = number,
                                                                           .code = Errc::cancelled,
                                                                           .rank = Rank(which),
                                                                           .gone = which % 4 == 0,
                                                                           .text = "given up"}));
            return;
        }
        // Often the description that the engine itself sent.
        const auto heard =
            testing::frames_of<wire::CollectiveMismatch>(link_->written(Lane::eager));
        std::string text = which % 2 == 0 || heard.empty() ? "broadcast u8 x 9, root 1|x"
                                                           : heard.back().description;
        link_->arrive(Lane::eager,
                      testing::said(wire::CollectiveMismatch{.context = named,
                                                             .operation = number,
                                                             .expects = which % 3,
                                                             .description = std::move(text)}));
    }

    /// Usually the next one.
    std::uint64_t sequence(ContextId of, bool takes) {
        std::uint64_t& next = next_in_[of];
        const unsigned which = script_->byte();
        if (which < 240) return takes ? next++ : next - std::min<std::uint64_t>(next, which % 4);
        return which == 255 ? ~std::uint64_t{0} : next + which - 248;
    }

    /// The size on which header and stream of a message agree, whichever comes first.
    std::uint64_t size_of(ContextId context, std::uint64_t number, std::uint64_t proposed) {
        return sizes_.try_emplace({context, number}, proposed).first->second;
    }

    std::map<std::uint64_t, Stream>::iterator pick(std::map<std::uint64_t, Stream>& from) {
        if (from.empty()) from[0] = {};
        return std::next(from.begin(), static_cast<std::ptrdiff_t>(script_->byte() % from.size()));
    }

    Script* script_;
    testing::FakeLink* link_;
    std::function<void()> turn_;
    std::map<std::uint64_t, Stream> streams_;
    std::map<ContextId, std::uint64_t> next_in_;
    std::set<ContextId> begun_;
    std::map<MessageNumber, std::uint64_t> sizes_;
    std::uint64_t eager_size_ = 0;
    std::uint64_t eager_left_ = 0;
    bool anything_ = false;
};

}  // namespace nexar::fuzz
