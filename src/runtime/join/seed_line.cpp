#include "runtime/join/seed_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nexar/version.hpp>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

constexpr Duration kRenewRetry = std::chrono::minutes(1);
constexpr Duration kRenewPause = std::chrono::milliseconds(500);

}  // namespace

std::string SeedLine::software() {
    return fmt::format("nexar {}", version());
}

SeedLine::SeedLine(port::Carrier& carrier, JoinTerms terms, security::KeyPair key,
                   HostServices services)
    : carrier_(&carrier),
      terms_(std::move(terms)),
      services_(std::move(services)),
      join_key_(std::move(key)) {}

void SeedLine::dial(TimePoint now, const engine::AddressRace::Attempt& attempt, bool to_witness) {
    port::DialTarget target{.address = attempt.address, .peer = port::SeedTarget{}};
    const bool as_joiner = credentials_ == nullptr;
    if (as_joiner) {
        port::JoinTarget seed;
        if (terms_.join) seed.ca = terms_.join->ca;
        target.peer = seed;
    }
    const auto id = carrier_->dial(now, target);
    if (!id) {
        if (!to_witness) problems_.insert_or_assign(attempt.address.text(), id.error());
        (to_witness ? witness_race_ : race_).failed(now);
        return;
    }
    SeedLink& one = links_[*id];
    one.to = attempt.address;
    one.to_witness = to_witness;
    one.as_joiner = as_joiner;
    if (const auto surplus = race_of(one).dialed(now, attempt, *id)) {
        end(*surplus, links_.at(*surplus), "another attempt is in progress");
    }
}

void SeedLine::ping(TimePoint now) {
    if (!talking_ || epoch_ != Epoch(0) || now < ping_at_) return;
    ping_at_ = now + kPing;
    links_.at(*talking_).link->send_datagram(wire::to_bytes(wire::Heartbeat{}));
}

void SeedLine::turn(TimePoint now) {
    now_ = now;
    if (closing_ || failure_) return;
    if (!talking_ && witness_link_) {
        talking_ = std::exchange(witness_link_, std::nullopt);
        for (const auto& [rank, report] : reports_) tell(report);
        plan_renewal(now);
    }
    if (!talking_ && !leaving_) {
        if (!race_.running() && now >= race_.next_round_at()) {
            problems_.clear();
            race_.begin(now, terms_.seeds);
        }
        while (const auto attempt = race_.next(now)) dial(now, *attempt, false);
        if (race_.exhausted()) on_round_failed(now);
    }
    look_for_witness(now);
    ping(now);
    if (renew_at_ && now >= *renew_at_) renew(now);
}

std::optional<TimePoint> SeedLine::next_deadline() const {
    if (closing_ || failure_) return std::nullopt;
    std::optional<TimePoint> due = renew_at_;
    const auto at = [&](TimePoint time) { due = due ? std::min(*due, time) : time; };
    if (!talking_) {
        due.reset();
        if (!leaving_) at(race_.due());
    } else if (epoch_ == Epoch(0)) {
        at(ping_at_);
    }
    if (lacks_witness()) at(witness_race_.due());
    return due;
}

bool SeedLine::handle(TimePoint now, const port::LinkEvent& event) {
    now_ = now;
    if (!links_.contains(event.link)) return false;
    if (const auto* up = std::get_if<port::Up>(&event.what)) {
        on_up(now, event.link, *up);
    } else if (const auto* down = std::get_if<port::Down>(&event.what)) {
        on_down(now, event.link, down->reason);
    } else if (const auto* datagram = std::get_if<port::DatagramArrived>(&event.what)) {
        on_datagram(links_.at(event.link), datagram->bytes);
    }
    return true;
}

void SeedLine::on_up(TimePoint now, port::LinkId id, const port::Up& up) {
    SeedLink& one = links_.at(id);
    one.link = up.link;
    if (!one.as_joiner) owners_.insert_or_assign(one.to.text(), up.link->peer().node);
    if (one.to_witness && !closing_ && !one.over) return on_witness_up(now, id, one);
    if (talking_ || closing_ || one.over) {
        end(id, one, "another address answered first");
        return;
    }
    talking_ = id;
    ping_at_ = now + kPing;
    race_.stop_until(now);
    race_.reset_pause();
    for (auto& [other, unused] : links_) {
        if (other != id && !unused.to_witness) end(other, unused, "another address answered first");
    }
    open_lane(id, one);
    if (one.as_joiner) {
        greet_as_joiner(one);
    } else {
        greet_as_member(now, one);
    }
}

void SeedLine::open_lane(port::LinkId id, SeedLink& one) {
    one.lane = std::make_unique<SeedLane>(
        *one.link, [this, id](const wire::FrameHeader& header, port::ConstBytes body) {
            return take(id, header, body);
        });
}

void SeedLine::greet_as_member(TimePoint now, SeedLink& one) {
    one.lane->send(wire::Hello{.epoch = epoch_, .software = software()});
    for (const auto& [rank, report] : reports_) one.lane->send(report);
    plan_renewal(now);
}

void SeedLine::greet_as_joiner(SeedLink& one) {
    ca_.reset();
    if (auto shown = security::Certificate::from_der(one.link->peer_ca())) ca_ = std::move(*shown);
    if (!ca_) return one.lane->close("you presented no CA certificate");
    proved_ = false;
    offered_.reset();
    if (!terms_.job_secret) {
        if (auto asked = ask_to_join(one); !asked) one.lane->close(asked.error().cause());
        return;
    }
    const auto bound = binding(*one.link);
    const auto key = ca_->public_key();
    if (!bound || !key) {
        one.lane->close("this link has no keying material");
        return;
    }
    one.lane->send(wire::Proof{terms_.job_secret->proof(security::Role::client, *bound, *key)});
}

void SeedLine::end(port::LinkId id, SeedLink& one, std::string_view why) {
    one.over = true;
    race_of(one).ended(id);
    if (one.link != nullptr) {
        one.link->close(why);
    } else {
        carrier_->abandon(id);
    }
}

void SeedLine::on_down(TimePoint now, port::LinkId id, const Error& reason) {
    const auto found = links_.find(id);
    const Address to = found->second.to;
    const bool over = found->second.over;
    const bool was_talking = talking_ == id;
    const bool to_witness = found->second.to_witness;
    race_of(found->second).ended(id);
    links_.erase(found);
    if (witness_link_ == id) witness_link_.reset();
    if (was_talking) {
        talking_.reset();
        renew_at_.reset();
    }
    if (over || (to_witness && !was_talking)) return;
    // The seed's report says more than the closing of the link that follows it.
    problems_.try_emplace(to.text(), reason);
    if (was_talking || race_.exhausted()) on_round_failed(now);
}

void SeedLine::on_round_failed(TimePoint now) {
    // If every address leads to a seed other than the expected one, that will not change; a seed
    // that does not answer may still start.
    const bool refused =
        !credentials_ && !problems_.empty() && std::ranges::all_of(problems_, [](const auto& one) {
            return one.second.code() == Errc::unauthenticated ||
                   one.second.code() == Errc::version_mismatch;
        });
    if (refused && !failure_) failure_ = problems_.begin()->second;
    race_.end_round(now);
}

Result<void> SeedLine::ask_to_join(SeedLink& one) {
    if (!join_key_) {
        return Error(Errc::protocol_violation, "the seed has already admitted this process");
    }
    NEXAR_TRY_VALUE(bound, binding(*one.link));
    NEXAR_TRY_VALUE(request, security::SigningRequest::create(*join_key_, bound));
    wire::Hello hello{.software = software(), .wanted_rank = terms_.wanted_rank};
    wire::JoinRequest join{.signing_request = request.der(),
                           .host = terms_.host,
                           .addresses = wire::in_wire(terms_.addresses)};
    if (terms_.join) {
        join.token = terms_.join->token.bytes();
        terms_.join->secret.reveal([&](std::span<const std::byte> bytes) {
            std::ranges::copy(bytes, join.token_secret.begin());
        });
    }
    one.lane->send(hello);
    one.lane->send(join);
    wipe(join.token_secret);
    return {};
}

void SeedLine::plan_renewal(TimePoint now) {
    // Half of the remaining time, not of the whole lifetime: certificates begin in the past, for
    // nodes whose clocks are slow.
    const auto left = credentials_->validity().not_after - services_.wall_clock();
    renew_at_ = now + std::max(std::chrono::duration_cast<Duration>(left / 2), kRenewPause);
}

void SeedLine::renew(TimePoint now) {
    renew_at_ = now + kRenewRetry;
    if (!talking_ || links_.at(*talking_).as_joiner) return;
    SeedLink& one = links_.at(*talking_);
    auto key = services_.new_key();
    const auto bound = binding(*one.link);
    if (!key || !bound) return;
    auto request = security::SigningRequest::create(*key, *bound);
    if (!request) return;
    renewal_key_ = std::move(*key);
    one.lane->send(wire::Renewal{.signing_request = request->der()});
}

void SeedLine::report(const wire::LinkReport& report) {
    reports_.insert_or_assign(report.rank, report);
    tell(report);
}

/// Sends the message if this node has a link to the seed as a member.
template <class Message>
void SeedLine::tell(const Message& message) {
    if (!talking_) return;
    SeedLink& one = links_.at(*talking_);
    if (!one.over && !one.as_joiner && !one.lane->closed()) one.lane->send(message);
}

std::string SeedLine::news() const {
    if (talking_ && !formation_.empty()) return formation_;
    std::string all;
    for (const auto& [seed, problem] : problems_) {
        all += fmt::format("{}seed {}: {}", all.empty() ? "" : "; ", seed, problem.cause());
    }
    if (!all.empty()) return all;
    if (refusal_) return refusal_->cause();  // the next attempt follows
    std::string seeds;
    for (const Address& seed : terms_.seeds) seeds += (seeds.empty() ? "" : ", ") + seed.text();
    return talking_ ? "the seed answers but has not admitted this process yet"
                    : fmt::format("no seed answers at {}; check that it runs and that UDP can pass",
                                  seeds);
}

void SeedLine::abort(const wire::Abort& abort) {
    tell(abort);
    close(std::nullopt);
}

void SeedLine::close(const std::optional<Error>& why) {
    closing_ = true;
    if (why) tell(wire::report_of(*why, epoch_));
    for (auto& [id, one] : links_) end(id, one, "the node was closed");
}

}  // namespace nexar::runtime
