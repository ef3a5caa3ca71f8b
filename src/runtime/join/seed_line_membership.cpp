// The messages of the agreement on views between a node and the seeds, and the search for the seed
// that is the witness.

#include <algorithm>
#include <type_traits>
#include <utility>

#include "runtime/join/seed_line.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

void SeedLine::on_view(SeedLink& one, const wire::ViewFrame& frame) {
    if (epoch_ != Epoch(0)) {
        if (frame.epoch < epoch_) bring_view(one);
        push(one, frame);
        return;
    }
    // A later view may no longer contain a joiner; then the seed refuses it, and it joins again.
    View view = wire::from_wire(frame);
    if (!credentials_ || view.find(credentials_->identity().node) == nullptr) return;
    epoch_ = view.epoch;
    newest_ = view;
    saw_witness_at_ = now_;
    view_ = std::move(view);
    join_key_.reset();
}

void SeedLine::bring_view(SeedLink& one) {
    if (newest_ && one.lane && !one.over && !one.lane->closed())
        one.lane->send(wire::in_wire(*newest_));
}

void SeedLine::set_view(const View& view) {
    if (view.epoch <= epoch_) return;
    epoch_ = view.epoch;
    newest_ = view;
    std::erase_if(reports_, [&](const auto& entry) { return !view.find(entry.first); });
    // The voters inform the witness. Two members must inform a seed that is none.
    const auto informs = [&](const Member& one) {
        return credentials_ && one.node == credentials_->identity().node;
    };
    const auto first = view.members.begin();
    const auto count = std::min<std::ptrdiff_t>(2, std::ssize(view.members));
    SeedLink* const seed = attached(talking_);
    if (seed != nullptr && lacks_witness() && std::any_of(first, first + count, informs)) {
        bring_view(*seed);
    }
}

void SeedLine::push(const SeedLink& one, membership::Message message) {
    if (epoch_ == Epoch(0) || one.over || messages_.size() >= kMostMessages) return;
    messages_.push_back({.from = one.link->peer(), .message = std::move(message)});
}

std::optional<FromSeed> SeedLine::poll_membership() {
    if (messages_.empty()) return std::nullopt;
    FromSeed first = std::move(messages_.front());
    messages_.pop_front();
    return first;
}

void SeedLine::on_datagram(const SeedLink& one, port::ConstBytes bytes) {
    const auto header = wire::decode_frame_header(bytes);
    if (one.as_joiner || !header || header->type != wire::FrameType::heartbeat ||
        bytes.size() != wire::kFrameHeaderBytes + header->body_bytes) {
        return;
    }
    const auto heartbeat =
        wire::decode_body<wire::Heartbeat>(*header, bytes.subspan(wire::kFrameHeaderBytes));
    if (heartbeat) push(one, heartbeat->message);
}

const SeedLine::SeedLink* SeedLine::attached(const std::optional<port::LinkId>& id) const {
    if (!id) return nullptr;
    const SeedLink& one = links_.at(*id);
    return !one.as_joiner && !one.over && one.lane && !one.lane->closed() ? &one : nullptr;
}

SeedLine::SeedLink* SeedLine::attached(const std::optional<port::LinkId>& id) {
    return const_cast<SeedLink*>(std::as_const(*this).attached(id));
}

SeedLine::SeedLink* SeedLine::link_to(const NodeId& seed) {
    for (const auto& id : {talking_, witness_link_}) {
        SeedLink* const one = attached(id);
        if (one != nullptr && one->link->peer().node == seed) return one;
    }
    return nullptr;
}

void SeedLine::send_membership(const NodeId& to, const membership::Message& message) {
    SeedLink* const one = link_to(to);
    if (one == nullptr || closing_) return;
    std::visit(
        [&](const auto& content) {
            if constexpr (std::is_same_v<std::decay_t<decltype(content)>, wire::Heartbeat>) {
                one->link->send_datagram(wire::to_bytes(content));
            } else {
                one->lane->send(content);
            }
        },
        message);
}

/// The seed that this node talks to, and the witness of its newest view. Empty if it has no link to
/// a seed, or if there is no witness.
std::optional<SeedLine::SeedAndWitness> SeedLine::seed_and_witness() const {
    const SeedLink* const seed = attached(talking_);
    if (seed == nullptr || !newest_ || !newest_->witness) return std::nullopt;
    return SeedAndWitness{.seed = seed->link->peer(), .witness = newest_->witness->seed};
}

/// This node has a link to a seed, and none to the view's witness, which is another seed.
bool SeedLine::lacks_witness() const {
    const auto both = seed_and_witness();
    return both && both->seed.node != both->witness && attached(witness_link_) == nullptr;
}

void SeedLine::look_for_witness(TimePoint now) {
    const auto both = seed_and_witness();
    if (!both || !lacks_witness()) {
        if (witness_link_ && both && both->seed.node == both->witness) {
            end(*witness_link_, links_.at(*witness_link_), "this node has a link to the witness");
            witness_link_.reset();
        }
        if (witness_race_.running()) witness_race_.stop_until(now);
        return;
    }
    if (!witness_race_.running() && now >= witness_race_.next_round_at()) {
        const NodeId here = both->seed.node;
        std::vector<Address> others;
        std::ranges::copy_if(terms_.seeds, std::back_inserter(others), [&](const Address& one) {
            const auto owner = owners_.find(one.text());
            return owner == owners_.end() || owner->second != here;
        });
        witness_race_.begin(now, std::move(others));
    }
    while (const auto attempt = witness_race_.next(now)) dial(now, *attempt, true);
    if (witness_race_.exhausted()) witness_race_.end_round(now);
}

void SeedLine::on_witness_up(TimePoint now, port::LinkId id, SeedLink& one) {
    const auto both = seed_and_witness();
    if (!both || !lacks_witness() || one.link->peer().node != both->witness) {
        end(id, one, "this node looks for another seed");
        return;
    }
    witness_link_ = id;
    saw_witness_at_ = now;
    witness_race_.stop_until(now);
    witness_race_.reset_pause();
    for (auto& [other, unused] : links_) {
        if (other != id && unused.to_witness && !unused.over) {
            end(other, unused, "another address answered first");
        }
    }
    open_lane(id, one);
    one.lane->send(wire::Hello{.epoch = epoch_, .software = software()});
}

std::optional<Witness> SeedLine::better_witness(TimePoint now, Duration patience) {
    if (!newest_ || !newest_->witness || newest_->members.empty() || !credentials_) return {};
    const auto both = seed_and_witness();
    if (!both || !lacks_witness()) {
        saw_witness_at_ = now;
        return std::nullopt;
    }
    if (newest_->members.front().node != credentials_->identity().node ||
        now - saw_witness_at_ < patience) {
        return std::nullopt;
    }
    saw_witness_at_ = now;
    return Witness{.seed = both->seed.node, .incarnation = both->seed.incarnation};
}

}  // namespace nexar::runtime
