// Handles the frames that the seed sends to a node.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "runtime/join/seed_line.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

Error another_job(const Address& seed) {
    return {Errc::unauthenticated,
            fmt::format(
                "the seed at {} does not know the secret of this process: it belongs to another "
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

Result<void> SeedLine::take(port::LinkId id, const wire::FrameHeader& header,
                            port::ConstBytes body) {
    SeedLink& one = links_.at(id);
    switch (header.type) {
        case wire::FrameType::proof: {
            NEXAR_TRY_VALUE(proof, wire::decode_body<wire::Proof>(header, body));
            return on_proof(one, proof.message);
        }
        case wire::FrameType::admission: {
            NEXAR_TRY_VALUE(admission, wire::decode_body<wire::Admission>(header, body));
            return on_admission(one, admission.message);
        }
        case wire::FrameType::welcome: {
            NEXAR_TRY_VALUE(welcome, wire::decode_body<wire::Welcome>(header, body));
            return on_welcome(one, welcome.message);
        }
        case wire::FrameType::formation: {
            NEXAR_TRY_VALUE(formation, wire::decode_body<wire::Formation>(header, body));
            formation_ = formation.message.text;
            if (epoch_ != Epoch(0)) bring_view(one);  // the seed has none
            return {};
        }
        case wire::FrameType::view: {
            NEXAR_TRY_VALUE(view, wire::decode_body<wire::ViewFrame>(header, body));
            on_view(one, view.message);
            return {};
        }
        case wire::FrameType::suspicion: {
            NEXAR_TRY_VALUE(suspicion, wire::decode_body<wire::Suspicion>(header, body));
            push(one, suspicion.message);
            return {};
        }
        case wire::FrameType::ballot: {
            NEXAR_TRY_VALUE(ballot, wire::decode_body<wire::Ballot>(header, body));
            push(one, std::move(ballot.message));
            return {};
        }
        case wire::FrameType::error_report: {
            NEXAR_TRY_VALUE(report, wire::decode_body<wire::ErrorReport>(header, body));
            return on_report(one, report.message);
        }
        default:
            return Error(Errc::protocol_violation,
                         fmt::format("the seed sent a frame of type {}", wire::name(header.type)));
    }
}

Result<void> SeedLine::on_proof(SeedLink& one, const wire::Proof& proof) {
    if (!terms_.job_secret || !one.as_joiner || proved_ || !ca_) {
        return Error(Errc::protocol_violation,
                     "the seed sent a proof that this node did not ask for");
    }
    NEXAR_TRY_VALUE(bound, binding(*one.link));
    NEXAR_TRY_VALUE(key, ca_->public_key());
    if (!terms_.job_secret->proves(proof.code, security::Role::server, bound, key)) {
        failure_ = another_job(one.to);
        return *failure_;
    }
    proved_ = true;
    return ask_to_join(one);
}

Result<void> SeedLine::on_admission(const SeedLink& one, const wire::Admission& admission) {
    NEXAR_TRY_VALUE(certificate, security::Certificate::from_der(admission.certificate));
    NEXAR_TRY_VALUE(identity, certificate.identity());
    const bool renewed = !one.as_joiner;
    const auto& key = renewed ? renewal_key_ : join_key_;
    if (!key || !ca_)
        return Error(Errc::protocol_violation,
                     "the seed sent an admission that this node did not ask for");
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
    carrier_->set_credentials(credentials_);
    NEXAR_LOG_INFO("the certificate of this node was renewed");
    plan_renewal(now_);
    return {};
}

Result<void> SeedLine::on_welcome(SeedLink& one, const wire::Welcome& welcome) {
    if (!one.as_joiner || !offered_ || !talking_ || one.over) {
        return Error(Errc::protocol_violation,
                     "the seed sent a welcome that this node did not ask for");
    }
    credentials_ = std::exchange(offered_, nullptr);
    refusal_.reset();
    carrier_->set_credentials(credentials_);
    admission_ = Admitted{.credentials = credentials_, .welcome = welcome};
    // From here on the seed knows this node by its certificate.
    end(*talking_, one, "joined");
    talking_.reset();
    race_.stop_until(now_);
    return {};
}

Result<void> SeedLine::on_report(const SeedLink& one, const wire::ErrorReport& report) {
    if (!one.as_joiner && report.code != Errc::unauthenticated) {
        ended_ = Error(report.code, printable(report.text, wire::kMaxReportTextBytes));
        return {};
    }
    // The report of a seed that has given up needs no prefix.
    Error said(report.code, report.code == Errc::closed
                                ? report.text
                                : fmt::format("the seed refused this process: {}", report.text));
    // Each side only sees that the secrets differ.
    if (report.code == Errc::unauthenticated && terms_.job_secret && !proved_) {
        said = another_job(one.to);
    }
    refusal_ = said;
    race_.lengthen_pause(kRefusedPause);
    for (const Address& seed : terms_.seeds) problems_.insert_or_assign(seed.text(), said);
    // Another seed may be able to help.
    const auto refusing = std::ranges::find(terms_.seeds, one.to);
    if (refusing != terms_.seeds.end()) {
        std::rotate(refusing, refusing + 1, terms_.seeds.end());
    }
    if (one.as_joiner) {
        if (is_final(report.code)) failure_ = said;
    } else if (epoch_ == Epoch(0)) {
        // The seed gave our place away when it no longer heard from us. Another place may be free.
        credentials_.reset();
    } else if (!std::exchange(dismissed_, true)) {
        // A formed cluster does not need this seed; the members decide whether this node is one.
        NEXAR_LOG_WARNING("the seed at {} does not know this member: {}", one.to.text(),
                          report.text);
    }
    return said;
}

}  // namespace nexar::runtime
