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

Error another_job(const Address& seed) {
    return {
        Errc::unauthenticated,
        fmt::format("the seed at {} has another secret than this process: it belongs to another "
                    "job that uses the same port, or the ranks of this job were given different "
                    "secrets; set NEXAR_SEED_PORT on all ranks to a port that no other job "
                    "uses, or give all ranks the same NEXAR_JOB_SECRET",
                    seed.text())};
}

bool is_final(Errc code) noexcept {
    return remedy(code) != Remedy::retry;
}

Result<security::KeyPair> copy_of(const security::KeyPair& key) {
    NEXAR_TRY_VALUE(pem, key.to_pem());
    return security::KeyPair::from_pem(pem);
}

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

bool SeedLine::handle(TimePoint now, const port::Event& event) {
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

Result<void> SeedLine::take(port::LinkId id, const wire::FrameHeader& header,
                            port::ConstBytes body) {
    Call& call = calls_.at(id);
    switch (header.type) {
        case wire::FrameType::proof: {
            NEXAR_TRY_VALUE(proof, wire::decode_body<wire::Proof>(header, body));
            return on_proof(call, proof.message);
        }
        case wire::FrameType::admission: {
            NEXAR_TRY_VALUE(admission, wire::decode_body<wire::Admission>(header, body));
            return on_admission(call, admission.message);
        }
        case wire::FrameType::welcome: {
            NEXAR_TRY_VALUE(welcome, wire::decode_body<wire::Welcome>(header, body));
            return on_welcome(call, welcome.message);
        }
        case wire::FrameType::formation: {
            NEXAR_TRY_VALUE(formation, wire::decode_body<wire::Formation>(header, body));
            formation_ = formation.message.text;
            return {};
        }
        case wire::FrameType::view: {
            NEXAR_TRY_VALUE(view, wire::decode_body<wire::ViewFrame>(header, body));
            if (view.message.epoch <= epoch_) return {};
            epoch_ = view.message.epoch;
            view_ = wire::from_wire(view.message);
            join_key_.reset();
            return {};
        }
        case wire::FrameType::error_report: {
            NEXAR_TRY_VALUE(report, wire::decode_body<wire::ErrorReport>(header, body));
            return on_report(call, report.message);
        }
        default:
            return Error(
                Errc::protocol_violation,
                fmt::format("a frame of type {} came from the seed", wire::name(header.type)));
    }
}

Result<void> SeedLine::on_proof(Call& call, const wire::Proof& proof) {
    if (!terms_.job_secret || !call.as_joiner || proved_ || !ca_) {
        return Error(Errc::protocol_violation, "a proof came that was not asked for");
    }
    NEXAR_TRY_VALUE(bound, binding(call));
    NEXAR_TRY_VALUE(key, ca_->public_key());
    if (!terms_.job_secret->proves(proof.code, security::Role::server, bound, key)) {
        failure_ = another_job(call.to);
        return *failure_;
    }
    proved_ = true;
    return ask_to_join(call);
}

Result<void> SeedLine::on_admission(const Call& call, const wire::Admission& admission) {
    NEXAR_TRY_VALUE(certificate, security::Certificate::from_der(admission.certificate));
    NEXAR_TRY_VALUE(identity, certificate.identity());
    const bool renewed = !call.as_joiner;
    const auto& key = renewed ? renewal_key_ : join_key_;
    if (!key || !ca_) return Error(Errc::protocol_violation, "an admission came unasked");
    if (identity.node != NodeId(admission.node) ||
        (renewed && identity.node != credentials_->identity().node)) {
        return Error(Errc::protocol_violation, "the certificate names another node");
    }
    NEXAR_TRY_VALUE(own, copy_of(*key));
    NEXAR_TRY_VALUE(made, security::Credentials::create(std::move(own), certificate, *ca_));
    if (!renewed) {
        offered_ = made;
        return {};
    }
    renewal_key_.reset();
    credentials_ = made;
    endpoint_->set_credentials(credentials_);
    NEXAR_LOG_INFO("the certificate of this node was renewed");
    plan_renewal(now_);
    return {};
}

Result<void> SeedLine::on_welcome(Call& call, const wire::Welcome& welcome) {
    if (!call.as_joiner || !offered_ || !talking_ || call.over) {
        return Error(Errc::protocol_violation, "a welcome came that was not asked for");
    }
    credentials_ = std::exchange(offered_, nullptr);
    refusal_.reset();
    endpoint_->set_credentials(credentials_);
    admission_ = Admitted{.credentials = credentials_, .welcome = welcome};
    // From here on we are known by our certificate.
    end(*talking_, call, "joined");
    talking_.reset();
    dial_at_ = now_;
    return {};
}

Result<void> SeedLine::on_report(const Call& call, const wire::ErrorReport& report) {
    if (!call.as_joiner && report.code != Errc::unauthenticated) {
        ended_ = Error(report.code, printable(report.text, wire::kMaxReportTextBytes));
        return {};
    }
    // A seed that has given up refuses everybody, and says all there is to say.
    Error said(report.code,
               report.code == Errc::closed
                   ? report.text
                   : fmt::format("the seed does not let this process in: {}", report.text));
    // Each side only sees that the other one has another secret.
    if (report.code == Errc::unauthenticated && terms_.job_secret && !proved_) {
        said = another_job(call.to);
    }
    refusal_ = said;
    pause_ = std::max(pause_, kRefusedPause);
    for (const Address& seed : terms_.seeds) problems_.insert_or_assign(seed.text(), said);
    if (call.as_joiner) {
        if (is_final(report.code)) failure_ = said;
    } else if (epoch_ == Epoch(0)) {
        // Our place was given away while we were not heard. There may be another one.
        credentials_.reset();
    } else {
        NEXAR_LOG_WARNING("the seed does not know this cluster any more: {}", report.text);
        dismissed_ = true;
    }
    return said;
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
    if (!talking_) return;
    Call& call = calls_.at(*talking_);
    if (!call.over && !call.as_joiner && !call.lane->closed()) call.lane->send(report);
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

void SeedLine::close(const std::optional<Error>& why) {
    closing_ = true;
    if (why && talking_) {
        Call& call = calls_.at(*talking_);
        const bool member = !call.over && !call.as_joiner && !call.lane->closed();
        if (member) call.lane->send(wire::report_of(*why, epoch_));
    }
    for (auto& [id, call] : calls_) end(id, call, "the node was closed");
}

}  // namespace nexar::runtime
