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

SeedLine::SeedLine(quic::Endpoint& endpoint, JoinTerms terms, security::KeyPair key)
    : endpoint_(&endpoint),
      terms_(std::move(terms)),
      join_key_(std::move(key)),
      next_seed_(terms_.seeds.size()) {}

void SeedLine::begin_round(TimePoint now) {
    problems_.clear();
    next_seed_ = 0;
    dial_at_ = now;
    beside_at_ = now + kBeside;
}

/// All seeds once more: the seed forgets a handshake that was interrupted for too long, and one
/// that was restarted does not know it.
void SeedLine::dial_beside(TimePoint now) {
    next_seed_ = 0;
    dial_at_ = now;
    beside_at_ = now + kBesideAgain;
}

void SeedLine::dial_next(TimePoint now) {
    const Address& seed = terms_.seeds[next_seed_++];
    dial_at_ = now + kStagger;
    std::optional<security::PublicKeyHash> ca;
    if (terms_.join) ca = terms_.join->ca;
    const bool as_joiner = credentials_ == nullptr;
    const auto id =
        as_joiner ? endpoint_->dial_as_joiner(now, seed, ca) : endpoint_->dial_seed(now, seed);
    if (!id) {
        problems_.insert_or_assign(seed.text(), id.error());
        return;
    }
    calls_[*id] = {.to = seed, .begun = now, .as_joiner = as_joiner};
    const auto same = [&](const auto& entry) {
        return !entry.second.over && entry.second.to == seed;
    };
    if (std::ranges::count_if(calls_, same) <= kMostBeside) return;
    const auto oldest = std::ranges::find_if(calls_, same);  // link ids ascend
    end(oldest->first, oldest->second, "another attempt is tried");
}

void SeedLine::ping(TimePoint now) {
    if (!talking_ || epoch_ != Epoch(0) || now < ping_at_) return;
    ping_at_ = now + kPing;
    calls_.at(*talking_).link->send_datagram(wire::to_bytes(wire::Heartbeat{}));
}

void SeedLine::turn(TimePoint now) {
    now_ = now;
    if (closing_ || failure_ || dismissed_) return;
    if (!talking_) {
        if (round_over() && !calling() && now >= dial_at_) begin_round(now);
        if (round_over() && calling() && now >= beside_at_) dial_beside(now);
        while (!round_over() && (now >= dial_at_ || !calling())) dial_next(now);
    }
    ping(now);
    if (renew_at_ && now >= *renew_at_) renew(now);
}

std::optional<TimePoint> SeedLine::next_deadline() const {
    if (closing_ || failure_ || dismissed_) return std::nullopt;
    if (!talking_) return !round_over() || !calling() ? dial_at_ : beside_at_;
    if (epoch_ == Epoch(0)) return renew_at_ ? std::min(ping_at_, *renew_at_) : ping_at_;
    return renew_at_;
}

bool SeedLine::handle(TimePoint now, const port::LinkEvent& event) {
    now_ = now;
    const auto found = calls_.find(event.link);
    if (found == calls_.end()) return false;
    if (const auto* up = std::get_if<port::Up>(&event.what)) {
        on_up(now, event.link, *up);
    } else if (const auto* down = std::get_if<port::Down>(&event.what)) {
        on_down(now, event.link, down->reason);
    }
    return true;
}

void SeedLine::on_up(TimePoint now, port::LinkId id, const port::Up& up) {
    Call& call = calls_.at(id);
    call.link = up.link;
    if (talking_ || closing_ || call.over) {
        end(id, call, "another address answered first");
        return;
    }
    talking_ = id;
    ping_at_ = now + kPing;
    next_seed_ = terms_.seeds.size();
    pause_ = kFirstPause;
    for (auto& [other, unused] : calls_) {
        if (other != id) end(other, unused, "another address answered first");
    }
    call.lane = std::make_unique<SeedLane>(
        *up.link, [this, id](const wire::FrameHeader& header, port::ConstBytes body) {
            return take(id, header, body);
        });
    if (!call.as_joiner) {
        call.lane->send(
            wire::Hello{.epoch = epoch_, .software = fmt::format("nexar {}", version())});
        for (const auto& [rank, report] : reports_) call.lane->send(report);
        plan_renewal(now);
        return;
    }
    ca_ = tls(call).seen_ca();
    if (!ca_) return call.lane->close("no CA was shown");
    proved_ = false;
    offered_.reset();
    if (!terms_.job_secret) {
        if (auto asked = ask_to_join(call); !asked) call.lane->close(asked.error().cause());
        return;
    }
    const auto bound = binding(call);
    const auto key = ca_->public_key();
    if (!bound || !key) {
        call.lane->close("no keying material");
        return;
    }
    call.lane->send(wire::Proof{terms_.job_secret->proof(security::Role::client, *bound, *key)});
}

void SeedLine::end(port::LinkId id, Call& call, std::string_view why) {
    call.over = true;
    if (call.link != nullptr) {
        call.link->close(why);
    } else {
        endpoint_->abandon(id);
    }
}

bool SeedLine::calling() const noexcept {
    return std::ranges::any_of(calls_, [](const auto& entry) { return !entry.second.over; });
}

void SeedLine::on_down(TimePoint now, port::LinkId id, const Error& reason) {
    const auto found = calls_.find(id);
    const Address to = found->second.to;
    const bool over = found->second.over;
    calls_.erase(found);
    if (talking_ == id) {
        talking_.reset();
        renew_at_.reset();
    }
    if (over) return;
    // What the seed said is worth more than that the link was closed after it.
    problems_.try_emplace(to.text(), reason);
    if (calling() || !round_over()) return;
    // A seed that every address shows to be another one stays so; one that is silent may come.
    const bool refused =
        !credentials_ && !problems_.empty() && std::ranges::all_of(problems_, [](const auto& one) {
            return one.second.code() == Errc::unauthenticated ||
                   one.second.code() == Errc::version_mismatch;
        });
    if (refused && !failure_) failure_ = problems_.begin()->second;
    dial_at_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
}

const security::TlsSession& SeedLine::tls(const Call& call) const {
    return static_cast<const quic::Connection&>(*call.link).tls();
}

Result<std::array<std::byte, kBindingBytes>> SeedLine::binding(const Call& call) const {
    std::array<std::byte, kBindingBytes> bytes{};
    NEXAR_TRY(tls(call).export_key(kBindingLabel, bytes));
    return bytes;
}

Result<void> SeedLine::ask_to_join(Call& call) {
    if (!join_key_) {
        return Error(Errc::protocol_violation, "the seed has let this process in already");
    }
    NEXAR_TRY_VALUE(bound, binding(call));
    NEXAR_TRY_VALUE(request, security::SigningRequest::create(*join_key_, bound));
    wire::Hello hello{.software = fmt::format("nexar {}", version()),
                      .wanted_rank = terms_.wanted_rank};
    wire::JoinRequest join{.signing_request = request.der(),
                           .host = terms_.host,
                           .addresses = wire::in_wire(terms_.addresses)};
    if (terms_.join) {
        join.token = terms_.join->token.bytes();
        terms_.join->secret.reveal([&](std::span<const std::byte> bytes) {
            std::ranges::copy(bytes, join.token_secret.begin());
        });
    }
    call.lane->send(hello);
    call.lane->send(join);
    wipe(join.token_secret);
    return {};
}

void SeedLine::plan_renewal(TimePoint now) {
    // Half of what is left, not of the whole: the beginning lies in the past, for clocks that are
    // behind.
    const auto left = credentials_->validity().not_after - std::chrono::system_clock::now();
    renew_at_ = now + std::max(std::chrono::duration_cast<Duration>(left / 2), kRenewPause);
}

void SeedLine::renew(TimePoint now) {
    renew_at_ = now + kRenewRetry;
    if (!talking_ || calls_.at(*talking_).as_joiner) return;
    Call& call = calls_.at(*talking_);
    auto key = security::KeyPair::generate();
    const auto bound = binding(call);
    if (!key || !bound) return;
    auto request = security::SigningRequest::create(*key, *bound);
    if (!request) return;
    renewal_key_ = std::move(*key);
    call.lane->send(wire::Renewal{.signing_request = request->der()});
}

void SeedLine::report(const wire::LinkReport& report) {
    reports_.insert_or_assign(report.rank, report);
    tell(report);
}

/// As a member, if there is a link now.
template <class Message>
void SeedLine::tell(const Message& message) {
    if (!talking_) return;
    Call& call = calls_.at(*talking_);
    if (!call.over && !call.as_joiner && !call.lane->closed()) call.lane->send(message);
}

std::string SeedLine::news() const {
    if (talking_ && !formation_.empty()) return formation_;
    std::string all;
    for (const auto& [seed, problem] : problems_) {
        all += fmt::format("{}seed {}: {}", all.empty() ? "" : "; ", seed, problem.cause());
    }
    if (!all.empty()) return all;
    if (refusal_) return refusal_->cause();  // the next attempt is on its way
    std::string seeds;
    for (const Address& seed : terms_.seeds) seeds += (seeds.empty() ? "" : ", ") + seed.text();
    return talking_ ? "the seed answers and has not let this process in yet"
                    : fmt::format("no seed answers at {}; is it running, and may UDP pass?", seeds);
}

void SeedLine::abort(const wire::Abort& abort) {
    tell(abort);
    close(std::nullopt);
}

void SeedLine::close(const std::optional<Error>& why) {
    closing_ = true;
    if (why) tell(wire::report_of(*why, epoch_));
    for (auto& [id, call] : calls_) end(id, call, "the node was closed");
}

}  // namespace nexar::runtime
