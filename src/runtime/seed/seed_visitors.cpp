// The conversation of a seed with joiners and members, and what it accepts from them.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/config_cluster.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "engine/abort_error.hpp"
#include "runtime/seed/seed_server.hpp"
#include "wire/codec.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

/// A joiner sends its whole request at once.
constexpr Duration kJoinerTime = std::chrono::seconds(2);
/// Joiners whose request has not arrived. Beyond this number the seed drops the one that has been
/// silent longest: an honest joiner needs one round trip, so a crowd of silent ones cannot keep it
/// out.
constexpr std::size_t kMostJoiners = 256;

/// The address without its port: the status names each host once.
std::string host_of(const Address& address) {
    const std::string text = address.text();
    return text.substr(0, text.rfind(':'));
}

}  // namespace

void SeedServer::take_events(TimePoint now) {
    while (const auto event = carrier_->poll_event()) {
        if (const auto* up = std::get_if<port::Up>(&event->what)) {
            on_up(now, event->link, *up);
        } else if (const auto* refused = std::get_if<port::Refused>(&event->what)) {
            // Report only refused credentials: nobody waits for a handshake that was never
            // finished.
            if (refused->reason.code() == Errc::unauthenticated) {
                desk_->refused(refused->from, refused->reason.cause());
            }
        } else if (const auto* down = std::get_if<port::Down>(&event->what)) {
            on_down(now, event->link, down->reason);
            carrier_->forget(event->link);
        } else if (const auto* datagram = std::get_if<port::DatagramArrived>(&event->what)) {
            on_datagram(now, event->link, datagram->bytes);
        }
    }
}

void SeedServer::on_down(TimePoint now, port::LinkId id, const Error& reason) {
    const auto found = visitors_.find(id);
    if (found == visitors_.end()) return;
    const auto member = found->second.member;
    const bool said_goodbye = reason.code() == Errc::link_closed && !found->second.lane->closed();
    visitors_.erase(found);
    const bool elsewhere = member && std::ranges::any_of(visitors_, [&](const auto& other) {
                               return other.second.member == member;
                           });
    if (!member || elsewhere || closing_) return;
    desk_->leave(member->node, now, said_goodbye);
    if (membership_) membership_->hint(now, member->node, membership::Hint::doubtful);
}

void SeedServer::on_up(TimePoint now, port::LinkId id, const port::Up& up) {
    Visitor& visitor = visitors_[id];
    visitor.id = id;
    visitor.joiner = up.joiner;
    visitor.deadline = now + kJoinerTime;
    visitor.from = host_of(up.link->remote());
    visitor.lane = std::make_unique<SeedLane>(
        *up.link, [this, id](const wire::FrameHeader& header, port::ConstBytes body) {
            return take(id, header, body);
        });
    if (closing_) {
        visitor.lane->close("the seed was closed");
        return;
    }
    if (up.joiner) {
        make_room_for_joiners();
        return;
    }
    visitor.holder = up.link->peer();
}

void SeedServer::make_room_for_joiners() {
    std::vector<Visitor*> waiting;
    for (auto& [id, visitor] : visitors_) {
        if (visitor.joiner && !visitor.lane->closed()) waiting.push_back(&visitor);
    }
    if (waiting.size() <= kMostJoiners) return;
    NEXAR_ASSERT(waiting.size() == kMostJoiners + 1, "each new joiner evicts one");
    (*std::ranges::min_element(waiting, {}, &Visitor::deadline))
        ->lane->close("too many joiners are waiting");
}

void SeedServer::expire(TimePoint now) {
    for (auto& [id, visitor] : visitors_) {
        if (visitor.lane->closed() || now < visitor.deadline) continue;
        if (!visitor.joiner) {
            visitor.lane->close("you sent no hello in time");
        } else {
            desk_->refused(visitor.from, "it connected and sent no join request within 2 s");
            visitor.lane->close("you sent no join request in time");
        }
    }
    desk_->expire(now);
}

void SeedServer::refuse(Visitor& visitor, const Error& error) {
    if (const auto line = refusal_log_.note(now_, visitor.from, error.cause())) {
        NEXAR_LOG_WARNING("{}", *line);
    }
    desk_->refused(visitor.from, error.cause());
    visitor.lane->send(wire::report_of(error, desk_->state().epoch));
    visitor.lane->close(error.cause());
}

Result<void> SeedServer::take(port::LinkId id, const wire::FrameHeader& header,
                              port::ConstBytes body) {
    Visitor& visitor = visitors_.at(id);
    switch (header.type) {
        case wire::FrameType::proof: {
            NEXAR_TRY_VALUE(proof, wire::decode_body<wire::Proof>(header, body));
            return on_proof(visitor, proof.message);
        }
        case wire::FrameType::hello: {
            NEXAR_TRY_VALUE(hello, wire::decode_body<wire::Hello>(header, body));
            return on_hello(visitor, hello.message);
        }
        case wire::FrameType::join_request: {
            NEXAR_TRY_VALUE(request, wire::decode_body<wire::JoinRequest>(header, body));
            auto joined = on_join(visitor, request.message);
            wipe(request.message.token_secret);
            return joined;
        }
        default:
            return take_of_member(visitor, header, body);
    }
}

Result<void> SeedServer::take_of_member(Visitor& visitor, const wire::FrameHeader& header,
                                        port::ConstBytes body) {
    // A member of a view that this seed has not learned yet may say what members say, also of ranks
    // that this seed does not know.
    const bool is_ahead = visitor.holder && visitor.told > desk_->state().epoch;
    const bool is_unknown = is_ahead && !visitor.member;
    switch (header.type) {
        case wire::FrameType::renewal: {
            NEXAR_TRY_VALUE(renewal, wire::decode_body<wire::Renewal>(header, body));
            return is_unknown ? Result<void>{} : on_renewal(visitor, renewal.message);
        }
        case wire::FrameType::error_report: {
            NEXAR_TRY_VALUE(report, wire::decode_body<wire::ErrorReport>(header, body));
            return is_unknown ? Result<void>{} : on_failed_member(visitor, report.message);
        }
        case wire::FrameType::link_report: {
            NEXAR_TRY_VALUE(report, wire::decode_body<wire::LinkReport>(header, body));
            return is_ahead ? Result<void>{} : on_link_report(visitor, report.message);
        }
        case wire::FrameType::abort: {
            NEXAR_TRY_VALUE(abort, wire::decode_body<wire::Abort>(header, body));
            return is_unknown ? Result<void>{} : on_abort(visitor, abort.message);
        }
        default:
            return take_of_voter(visitor, header, body);
    }
}

Result<void> SeedServer::on_proof(Visitor& visitor, const wire::Proof& proof) {
    if (!visitor.joiner || visitor.proved || visitor.greeted) {
        return Error(Errc::protocol_violation, "a proof is not allowed in this state");
    }
    const Error wrong(Errc::unauthenticated, "it does not know the secret of this job");
    NEXAR_TRY_VALUE(bound, binding(visitor.lane->link()));
    const security::PublicKey& key = ca_->key().public_key();
    if (!job_secret_ || !job_secret_->proves(proof.code, security::Role::client, bound, key)) {
        refuse(visitor, wrong);
        return {};
    }
    visitor.proved = true;
    visitor.lane->send(wire::Proof{job_secret_->proof(security::Role::server, bound, key)});
    return {};
}

Result<void> SeedServer::on_hello(Visitor& visitor, const wire::Hello& hello) {
    if (std::exchange(visitor.greeted, true)) {
        return Error(Errc::protocol_violation, "a second hello arrived");
    }
    if (const auto version = wire::check_version(hello, "this seed"); !version) {
        refuse(visitor, version.error());
        return {};
    }
    visitor.wanted_rank = hello.wanted_rank;
    if (visitor.holder) on_holder(visitor, *visitor.holder, hello.epoch);
    return {};
}

/// Somebody with a certificate of this cluster, who knows the view of epoch `knows`.
void SeedServer::on_holder(Visitor& visitor, const Identity& holder, Epoch knows) {
    visitor.deadline = TimePoint::max();
    visitor.told = knows;
    const auto& view = desk_->view();
    const bool knows_more = knows > desk_->state().epoch;
    if (const auto member = desk_->attend(holder)) {
        visitor.member = holder;
    } else if (desk_->is_second() && !view) {
        if (knows_more) return ask_for_view(visitor);
        // The first seed admitted it to a cluster that has not formed yet, and knows it.
        visitor.lane->close("this seed does not know the members yet");
        return;
    } else if (!knows_more) {
        // It learns that it was evicted, also by members that have all left since.
        const auto& last = view ? view : desk_->ended();
        if (last && knows != Epoch(0)) visitor.lane->send(wire::in_wire(*last));
        refuse(visitor, member.error());
        return;
    }
    if (knows_more) ask_for_view(visitor);
}

/// An old view, or the news that there is none, asks for the newer one.
void SeedServer::ask_for_view(Visitor& visitor) {
    if (const auto& view = desk_->view()) {
        visitor.lane->send(wire::in_wire(*view));
    } else {
        visitor.lane->send(wire::Formation{.joined = desk_->attending(),
                                           .world_size = desk_->world(),
                                           .text = "this seed does not know the members"});
    }
}

Result<security::SigningRequest> SeedServer::read_request(Visitor& visitor,
                                                          const std::vector<std::byte>& der) {
    NEXAR_TRY_VALUE(bound, binding(visitor.lane->link()));
    return security::SigningRequest::from_der(der, bound);
}

Result<void> SeedServer::on_join(Visitor& visitor, const wire::JoinRequest& request) {
    if (!visitor.joiner || !visitor.greeted) {
        return Error(Errc::protocol_violation, "a join request is not allowed in this state");
    }
    const auto signing = read_request(visitor, request.signing_request);
    if (!signing) {
        refuse(visitor, signing.error());
        return {};
    }
    NEXAR_TRY_VALUE(table, tokens());
    auto addresses = wire::from_wire(request.addresses);
    const Address seen = visitor.lane->link().remote();
    // Behind a NAT this may be the only address that works.
    if (std::ranges::find(addresses, seen) == addresses.end() && !seen.is_loopback() &&
        addresses.size() < wire::kMaxAddresses) {
        addresses.push_back(seen);
    }
    const auto member = desk_->admit({.proved_job_secret = visitor.proved,
                                      .token = security::TokenId(request.token),
                                      .secret = request.token_secret,
                                      .key = signing->public_key().hash(),
                                      .wanted_rank = visitor.wanted_rank,
                                      .addresses = std::move(addresses),
                                      .host = request.host},
                                     table, services_.wall_clock(), now_);
    if (!member) {
        const bool elsewhere = member.error().code() == Errc::unauthenticated && !visitor.proved &&
                               !other_seeds_.empty();
        // Each seed has its own tokens, and a join string names all seeds.
        refuse(visitor, elsewhere ? Error(Errc::too_many_pending,
                                          fmt::format("{}; another seed of this cluster may accept "
                                                      "it",
                                                      member.error().cause()))
                                  : member.error());
        return {};
    }
    answers_.push_back({.id = visitor.id, .member = *member, .key = signing->public_key()});
    return {};
}

/// Joiners may learn only of state that survives a restart, so the state is written first, once for
/// all joiners of this turn.
void SeedServer::answer_all() {
    if (answers_.empty() || !keep()) return;
    for (const Answer& one : std::exchange(answers_, {})) {
        const auto found = visitors_.find(one.id);
        if (found != visitors_.end()) answer(found->second, one);
    }
}

void SeedServer::answer(Visitor& visitor, const Answer& answer) {
    const Identity identity{.cluster = ca_->cluster(),
                            .node = answer.member.node,
                            .incarnation = answer.member.incarnation};
    const auto lifetime =
        std::chrono::duration_cast<std::chrono::seconds>(config_.duration("certificate_lifetime"));
    const auto certificate =
        ca_->issue({.public_key = answer.key, .identity = identity, .lifetime = lifetime},
                   services_.wall_clock());
    if (!certificate) {
        refuse(visitor, certificate.error());
        return;
    }
    visitor.lane->send(wire::Admission{.node = identity.node.bytes(),
                                       .incarnation = identity.incarnation.value(),
                                       .certificate = certificate->der()});
    if (!visitor.joiner) return;
    wire::Welcome welcome{
        .epoch = desk_->state().epoch, .rank = answer.member.rank, .world_size = desk_->world()};
    if (desk_->formed()) welcome.features = wire::kFeatureFormed;
    // The members of a cluster that has formed assign the rank; the view says which.
    welcome.world_size = std::max(welcome.world_size, welcome.rank.value() + 1);
    for (const ClusterSetting& setting : cluster_settings(config_)) {
        welcome.settings.push_back(
            {setting.name, setting.value, printable(setting.origin, wire::kMaxSettingOriginBytes)});
    }
    std::ranges::sort(welcome.settings, {}, &wire::Setting::name);
    visitor.lane->send(welcome);
    visitor.deadline = TimePoint::max();  // the joiner closes the link
}

Result<void> SeedServer::on_renewal(Visitor& visitor, const wire::Renewal& renewal) {
    if (!visitor.member)
        return Error(Errc::protocol_violation, "a joiner has no certificate to renew");
    NEXAR_TRY_VALUE(signing, read_request(visitor, renewal.signing_request));
    answer(visitor,
           {.id = visitor.id,
            .member = {.node = visitor.member->node, .incarnation = visitor.member->incarnation},
            .key = signing.public_key()});
    return {};
}

Result<void> SeedServer::on_link_report(Visitor& visitor, const wire::LinkReport& report) {
    const auto& view = desk_->view();
    const std::uint32_t ranks = view ? view->next_rank.value() : desk_->world();
    if (!visitor.member || report.rank.value() >= ranks) {
        return Error(Errc::protocol_violation, "a report names a rank that does not exist");
    }
    const Member* const own = view ? view->find(visitor.member->node) : nullptr;
    if (own == nullptr) return {};  // it belongs to a world that has ended
    reports_.insert_or_assign({own->rank, report.rank}, report);
    peers_changed();
    return {};
}

/// A member gave up: the others would wait in vain for links to it.
Result<void> SeedServer::on_failed_member(Visitor& visitor, const wire::ErrorReport& report) {
    if (!visitor.member) return Error(Errc::protocol_violation, "a joiner has no links to report");
    const auto& view = desk_->view();
    const Member* const own = view ? view->find(visitor.member->node) : nullptr;
    // Before the world has formed, another process may still take its place.
    if (!view || own == nullptr) return {};
    const Error left(Errc::link_closed,
                     fmt::format("rank {} left before all members were connected: {}",
                                 own->rank.value(), printable(report.text)),
                     {.rank = public_rank(own->rank)});
    for (auto& [id, other] : visitors_) {
        if (!other.member || other.member == visitor.member || other.lane->closed()) continue;
        other.lane->send(wire::report_of(left, view->epoch));
    }
    return {};
}

/// Members tell each other of an abort. The seed only remembers it for a launcher that asks.
Result<void> SeedServer::on_abort(Visitor& visitor, const wire::Abort& abort) {
    const auto& view = desk_->view();
    const Member* const own = view && visitor.member ? view->find(visitor.member->node) : nullptr;
    if (own == nullptr || own->rank != abort.rank) {
        return Error(Errc::protocol_violation,
                     fmt::format("only rank {} itself may report that it aborted the program",
                                 abort.rank.value()));
    }
    if (!aborted_) aborted_ = engine::error_of(abort);
    return {};
}

void SeedServer::reserve_for_members() {
    if (std::exchange(reserved_revision_, desk_->revision()) == desk_->revision()) return;
    std::vector<Address> addresses_of_members;
    for (const Member& one : desk_->known()) {
        addresses_of_members.insert(addresses_of_members.end(), one.addresses.begin(),
                                    one.addresses.end());
    }
    carrier_->set_members(addresses_of_members);
}

}  // namespace nexar::runtime
