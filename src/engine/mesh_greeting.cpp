// The exchange of Hello, Welcome and Confirm on a new link.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nexar/version.hpp>
#include <utility>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "engine/mesh.hpp"
#include "wire/codec.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

/// Writes a frame, after the preamble if it is the first one.
template <class Message>
void Mesh::greet(Candidate& candidate, const Message& message) {
    const auto preamble = wire::to_bytes(wire::Preamble{.lane = wire::Lane::control});
    const auto frame = wire::to_bytes(message);
    const std::array<port::ConstBytes, 2> pieces{preamble, frame};
    const std::span<const port::ConstBytes> all(pieces);
    const bool first = !std::exchange(candidate.spoken, true);
    // A new lane has room, unless the link has ended and its Down follows.
    if (candidate.link->write(port::Lane::control, first ? all : all.subspan(1))) {
        candidate.said_bytes += frame.size();
    }
}

/// Reads the first frames of a link, until the engine takes over its reader.
class Mesh::Greeter final : public LaneReader::Taker {
public:
    Greeter(Mesh& mesh, Candidate& candidate) noexcept : mesh_(&mesh), candidate_(&candidate) {}

    Result<LanePayload> frame(const wire::FrameHeader& header, port::ConstBytes body) override {
        if (candidate_->state == Candidate::State::closing) return LanePayload{};
        NEXAR_TRY(mesh_->on_frame(*candidate_, header, body));
        return LanePayload{};
    }
    void violated(const Error& error) override { mesh_->drop(*candidate_, error.cause()); }

private:
    Mesh* mesh_;
    Candidate* candidate_;
};

void Mesh::attach(Candidate& candidate) {
    candidate.taker = std::make_unique<Greeter>(*this, candidate);
    candidate.reader = std::make_unique<LaneReader>(wire::Lane::control, *candidate.taker);
    candidate.link->receive(port::Lane::control, *candidate.reader);
}

/// Keeps an accepted link until its peer has sent Hello.
void Mesh::hold(TimePoint now, Candidate& candidate) {
    candidate.held_until = now + options_.hold;
    attach(candidate);
    Way* const way = way_to(candidate.node);
    if (way != nullptr) way->candidates.push_back(&candidate);
    std::vector<Candidate*> held;
    for (const auto& [id, other] : candidates_) {
        const bool same =
            way != nullptr ? other->node == candidate.node : !ways_.contains(other->node);
        if (same && is_held(*other)) held.push_back(other.get());
    }
    if (way != nullptr) {
        drop_oldest(held, options_.max_offered, "you opened too many links without a hello");
    } else {
        drop_oldest(held, options_.max_held,
                    "too many links wait for a view that contains their node");
    }
}

void Mesh::drop_oldest(std::vector<Candidate*>& held, std::size_t most, std::string_view why) {
    if (held.size() <= most) return;
    const auto age = [](const Candidate* one) { return std::pair(one->held_until, one->id); };
    drop(**std::ranges::min_element(held, {}, age), why);
}

void Mesh::say_hello(Candidate& candidate) {
    candidate.state = Candidate::State::greeted;
    greet(candidate, wire::Hello{.features = wire::kFeatureConfirm,
                                 .epoch = view_.epoch,
                                 .software = fmt::format("nexar {}", version())});
    attach(candidate);
}

Result<void> Mesh::on_frame(Candidate& candidate, const wire::FrameHeader& header,
                            port::ConstBytes body) {
    if (!candidate.dialed && header.type == wire::FrameType::hello) {
        NEXAR_TRY_VALUE(hello, wire::decode_body<wire::Hello>(header, body));
        return on_hello(candidate, hello.message);
    }
    if (candidate.dialed && header.type == wire::FrameType::welcome) {
        NEXAR_TRY_VALUE(welcome, wire::decode_body<wire::Welcome>(header, body));
        return on_welcome(candidate, welcome.message);
    }
    if (candidate.state == Candidate::State::welcomed && header.type == wire::FrameType::confirm) {
        NEXAR_TRY(wire::decode_body<wire::Confirm>(header, body));
        return on_confirm(candidate);
    }
    if (header.type == wire::FrameType::error_report) {
        NEXAR_TRY_VALUE(report, wire::decode_body<wire::ErrorReport>(header, body));
        on_left(candidate, report.message);
        return {};
    }
    if (header.type == wire::FrameType::abort) {
        NEXAR_TRY_VALUE(abort, wire::decode_body<wire::Abort>(header, body));
        return way_to(candidate.node) == nullptr ? Result<void>{}
                                                 : engine_->hear_abort(abort.message);
    }
    return Error(Errc::protocol_violation,
                 fmt::format("the peer sent a frame of type {} before the hello and welcome",
                             wire::name(header.type)));
}

Result<void> Mesh::on_hello(Candidate& candidate, const wire::Hello& hello) {
    if (candidate.state != Candidate::State::up) {
        return Error(Errc::protocol_violation, "the peer sent a second hello");
    }
    NEXAR_TRY(wire::check_version(hello, "this node"));
    candidate.state = Candidate::State::greeted;
    candidate.epoch = hello.epoch;
    candidate.confirms = (hello.features & wire::kFeatureConfirm) != 0;
    consider(candidate);
    return {};
}

/// Decides whether an accepted link becomes the link of the pair.
void Mesh::consider(Candidate& candidate) {
    Way* const way = way_to(candidate.node);
    if (way == nullptr) {
        // A newer view may contain the node; ours does not.
        const bool late = candidate.state == Candidate::State::greeted && view_.epoch > Epoch(0) &&
                          candidate.epoch <= view_.epoch;
        if (late) drop(candidate, "you are not a member of the current view");
        return;
    }
    if (std::ranges::find(way->candidates, &candidate) == way->candidates.end()) {
        way->candidates.push_back(&candidate);
    }
    if (candidate.state != Candidate::State::greeted) return;
    if (way->connected) {
        // A peer dials again only if it has lost its end of the link. A link that both ends began
        // before they were connected proves nothing.
        constexpr Duration kLate = std::chrono::seconds(1);
        const bool late = candidate.up_at > way->connected_at + kLate;
        if (!late || !engine_->lose_links(candidate.node)) {
            drop(candidate, "you are already connected");
        }
        return;  // connect_again() takes it
    }
    const Member& member = way->member;
    if (candidate.link->peer().incarnation != member.incarnation) {
        drop(candidate, "your incarnation is not the one in the current view");
        return;
    }
    if (decides(*way) && way->race.running()) return;
    // A peer sends Hello on one link at a time: the link whose Confirm we wait for has failed at
    // its end.
    if (Candidate* const before = choice(*way).chosen; before != nullptr && !before->dialed) {
        drop(*before, "you sent a hello on another link");
    }
    welcome(candidate, *way);
}

void Mesh::welcome(Candidate& candidate, Way& way) {
    greet(candidate, wire::Welcome{.features = candidate.confirms ? wire::kFeatureConfirm : 0,
                                   .epoch = view_.epoch,
                                   .rank = way.member.rank,
                                   .world_size = static_cast<std::uint32_t>(
                                       view_.members.back().rank.value() + 1),
                                   .payload_credit_bytes = engine_->options().shared.payload,
                                   .header_credits = engine_->options().shared.headers});
    if (!candidate.confirms) return hand_over(candidate, way);
    candidate.state = Candidate::State::welcomed;
    way.race.stop_until(now_);  // so that the next round begins at once if this link goes down
    close_others(way, &candidate, "another link was chosen");
}

Result<void> Mesh::on_confirm(Candidate& candidate) {
    Way* const way = way_to(candidate.node);
    if (way == nullptr || way->connected) {
        drop(candidate, "you are already connected");
    } else {
        hand_over(candidate, *way);
    }
    return {};
}

/// Called when the peer leaves before it was connected to this node.
void Mesh::on_left(Candidate& candidate, const wire::ErrorReport& report) {
    Way* const way = way_to(candidate.node);
    if (way == nullptr || way->connected) return;
    const Rank rank = way->member.rank;
    const Error left(Errc::link_closed,
                     fmt::format("rank {} left before it was connected to this process: {}",
                                 rank.value(), printable(report.text, wire::kMaxReportTextBytes)),
                     {.rank = public_rank(rank)});
    if (options_.eager && way->neighbour && !failure_) failure_ = left;
    give_up(*way, left);
}

void Mesh::say_goodbye(Candidate& candidate, const Error& why) {
    const bool up = candidate.link != nullptr && candidate.state != Candidate::State::closing;
    if (up && engine_->abort_frame()) {
        greet(candidate, *engine_->abort_frame());
    } else if (up) {
        greet(candidate, wire::report_of(why, view_.epoch));
    }
    drop(candidate, "the node was closed");
}

Result<void> Mesh::on_welcome(Candidate& candidate, const wire::Welcome& welcome) {
    if (candidate.state != Candidate::State::greeted) {
        return Error(Errc::protocol_violation, "the peer sent a welcome without a hello");
    }
    Way* const way = way_to(candidate.node);
    if (way == nullptr || way->connected) {
        drop(candidate, "you are already connected");
        return {};
    }
    if (welcome.rank != rank_) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer says that this node is rank {}, but the view says {}",
                                 welcome.rank.value(), rank_.value()));
    }
    if ((welcome.features & wire::kFeatureConfirm) != 0) {
        greet(candidate, wire::Confirm{.epoch = view_.epoch});
    }
    hand_over(candidate, *way);
    return {};
}

}  // namespace nexar::engine
