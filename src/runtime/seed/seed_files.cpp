// The files that a seed writes to its state directory while it runs.

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "runtime/seed/seed_server.hpp"
#include "runtime/seed/stored_vote.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

/// How long changes of peers.json are collected before it is written.
constexpr Duration kPeersPause = std::chrono::milliseconds(200);
/// How long to wait before the next attempt while the state directory cannot be written, as when a
/// disk is full.
constexpr Duration kWriteRetry = std::chrono::seconds(1);

/// Text without control characters as JSON writes it (RFC 8259 section 7).
std::string in_json(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : printable(text, 4 * text.size() + 64)) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
    }
    return quoted + '"';
}

}  // namespace

wire::StoredSeed SeedServer::to_store() const {
    wire::StoredSeed state = desk_->state();
    // The desk has the vote with which the seed began, for the view of that time.
    clear_vote(state);
    if (!state.view.empty() && vote_.view.epoch == state.epoch) {
        state.promised_round = vote_.promised.round;
        state.promised_by = vote_.promised.proposer;
        state.accepted_round = vote_.accepted.round;
        state.accepted_by = vote_.accepted.proposer;
        if (vote_.accepted_view) state.accepted = {wire::in_wire(*vote_.accepted_view)};
    }
    return state;
}

bool SeedServer::keep() {
    const std::pair revision(desk_->revision(), votes_);
    if (!state_ || kept_revision_ == revision) return true;
    if (retry_writing_at_ && now_ < *retry_writing_at_) return false;
    if (const auto kept = state_->keep(to_store()); !kept) {
        if (!retry_writing_at_) {
            NEXAR_LOG_ERROR(
                "the seed cannot write its state; it admits nobody and does not vote "
                "until it can: {}",
                kept.error().cause());
        }
        retry_writing_at_ = now_ + kWriteRetry;
        return false;
    }
    if (retry_writing_at_) NEXAR_LOG_WARNING("the seed can write its state again");
    retry_writing_at_.reset();
    kept_revision_ = revision;
    return true;
}

void SeedServer::peers_changed() {
    if (!peers_due_) peers_due_ = now_ + kPeersPause;
}

std::string SeedServer::peers_json() const {
    std::string members;
    std::set<Rank> connected;
    for (const Member& one : desk_->known()) {
        std::string addresses;
        for (const Address& address : one.addresses) {
            addresses +=
                fmt::format("{}{}", addresses.empty() ? "" : ", ", in_json(address.text()));
        }
        const bool attends = desk_->attends(one.node);
        if (attends) connected.insert(one.rank);
        members += fmt::format(
            R"({}    {{"rank": {}, "connected": {}, "node": {}, "host": {}, "addresses": [{}]}})",
            members.empty() ? "" : ",\n", one.rank.value(), attends, in_json(one.node.to_hex()),
            in_json(one.host), addresses);
    }
    std::string pairs;
    for (const auto& [pair, report] : reports_) {
        if (!connected.contains(pair.first) || !connected.contains(pair.second)) continue;
        pairs +=
            fmt::format(R"({}    {{"rank": {}, "peer": {}, "hops": {}, "via": {}, "address": {}, )"
                        R"("round_trip_us": {:.1f}, "why": {}}})",
                        pairs.empty() ? "" : ",\n", pair.first.value(), pair.second.value(),
                        report.hops, report.hops > 1 ? fmt::to_string(report.via.value()) : "null",
                        in_json(report.address.text),
                        static_cast<double>(report.round_trip.count()) / 1e3, in_json(report.why));
    }
    return fmt::format(
        "{{\n  \"epoch\": {},\n  \"world\": {},\n  \"status\": {},\n  \"members\": [\n{}\n  ],\n"
        "  \"pairs\": [\n{}\n  ]\n}}\n",
        desk_->state().epoch.value(), desk_->world(), in_json(desk_->status()), members, pairs);
}

/// Drops what members said of pairs that no longer exist: ranks are never given to other members.
void SeedServer::drop_old_reports() {
    const auto& view = desk_->view();
    std::erase_if(reports_, [&](const auto& entry) {
        return !view || !view->find(entry.first.first) || !view->find(entry.first.second);
    });
}

/// Rewrites peers.json after every change of the members, so that it never shows members that have
/// left.
void SeedServer::keep_peers(TimePoint now) {
    if (peers_changes_ != desk_->changes()) {
        peers_changes_ = desk_->changes();
        drop_old_reports();
        peers_changed();
    }
    if (!peers_due_ || now < *peers_due_) return;
    peers_due_.reset();
    if (!state_) return;
    const auto kept = state_->keep_peers(peers_json());
    if (kept) {
        peers_failures_ = 0;
        return;
    }
    peers_due_ = now + kWriteRetry;
    // Unless keep() already logs the same failure.
    if (++peers_failures_ == 2 && !retry_writing_at_) {
        NEXAR_LOG_WARNING("peers.json cannot be written, so `nexar peers` shows an old state: {}",
                          kept.error().cause());
    }
}

}  // namespace nexar::runtime
