// How a node becomes a member: it handles the seed's answers and waits until all members are
// connected.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/config_cluster.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "runtime/collective_profile.hpp"
#include "runtime/join/addresses.hpp"
#include "runtime/members/succession.hpp"
#include "runtime/node_access.hpp"
#include "runtime/progress_options.hpp"
#include "runtime/topology_hops.hpp"
#include "security/link_state_signer.hpp"

namespace nexar::detail {

namespace {

/// Shared memory of a communicator per rank, for nodes that do not read settings.
constexpr std::size_t kSegmentBytes = std::size_t{8} * 1024 * 1024;

constexpr std::size_t kMostNamed = 4;
constexpr Duration kWarnAfter = std::chrono::seconds(5);
constexpr Duration kWarnEvery = std::chrono::seconds(15);

}  // namespace

Result<port::LinkId> NodeBody::dial(TimePoint now, const Address& to, const NodeId& node) {
    return first().dial(now, {.address = to, .peer = port::MemberTarget{.node = node}});
}

void NodeBody::abandon(port::LinkId link) {
    first().abandon(link);
}

Result<void> NodeBody::join(runtime::JoinTerms terms) {
    NEXAR_TRY_VALUE(key, services_.new_key());
    NEXAR_TRY_VALUE(signer, security::LinkStateSigner::create(key));
    signer_ = std::make_shared<security::LinkStateSigner>(std::move(signer));
    const NodeAccess access(*this);
    seed_ =
        std::make_unique<runtime::SeedLine>(first(), std::move(terms), std::move(key), services_);
    seed_->turn(access.now());
    return {};
}

void NodeBody::form(const View& view) {
    const NodeAccess access(*this);
    View complete = view;
    for (const Member& member : view.members) {
        complete.next_rank = std::max(complete.next_rank, Rank(member.rank.value() + 1));
    }
    take_view(access.now(), complete);
    look_whether_formed();  // a world of one has formed already
}

void NodeBody::follow_seed(TimePoint now) {
    seed_->turn(now);
    if (const auto admitted = seed_->admission()) {
        if (const auto taken = take_admission(*admitted); !taken) fail_formation(taken.error());
    }
    if (const auto view = seed_->view()) take_view(now, *view);
    if (const auto& failure = seed_->failure()) fail_formation(*failure);
    if (const auto& ended = seed_->end_of_formation()) fail_formation(*ended);
    tell_seed();
}

Result<void> NodeBody::take_admission(const runtime::Admitted& admitted) {
    identity_ = admitted.credentials->identity();
    first_world_ = admitted.welcome.world_size;
    late_ = (admitted.welcome.features & wire::kFeatureFormed) != 0;
    if (!config_) return {};
    std::vector<ClusterSetting> settings;
    settings.reserve(admitted.welcome.settings.size());
    for (const wire::Setting& one : admitted.welcome.settings) {
        settings.push_back({one.name, one.value, one.origin});
    }
    NEXAR_TRY_VALUE(config, adopt_cluster_settings(*config_, settings));
    config_ = std::move(config);
    if (config_->choice("protection") == "none") {
        first().set_protection(port::Protection::none);
    }
    return {};
}

/// How the world's collectives choose their algorithm: from the settings and the view, which are
/// equal on all members. Communicators made from the world inherit its profile.
Result<schedule::Profile> NodeBody::make_profile(std::span<const Member> members) {
    schedule::Profile profile;
    if (config_) {
        NEXAR_TRY_VALUE(configured, runtime::collective_profile(*config_));
        profile = configured;
        collective_timeout_ = config_->duration("collective_timeout");
    }
    if (!options_.collective_algorithm.empty()) {
        profile.forced = options_.collective_algorithm;
        NEXAR_TRY(schedule::check_forced(profile.forced));
    }
    runtime::set_members(profile, members, neighbourhood());
    return profile;
}

engine::Context& NodeBody::make_context(std::span<const NodeId> nodes, std::size_t me,
                                        const wire::ContextOrigin& origin,
                                        const schedule::Profile& profile) {
    engine::Context& made =
        runtime::add_communicator(engine_, identity_.cluster, nodes, me, origin, profile);
    share_memory(made);
    return made;
}

/// The first view, from the seed. Later ones come from the members.
void NodeBody::take_view(TimePoint now, const View& view) {
    if (formation_failure_ || membership_.begun()) return;
    const Member* const self = view.find(identity_.node);
    if (self == nullptr) {
        NEXAR_LOG_ERROR("the seed published a view that does not contain this node");
        return;
    }
    if (!late_ && seed_ && view.members.size() < first_world_) {
        return fail_formation(
            Error(Errc::membership_changed,
                  fmt::format("the cluster lost a member before this process was connected: {} of "
                              "{} are left",
                              view.members.size(), first_world_)));
    }
    first().set_members(runtime::addresses_of(view.members));
    if (const auto made = make_overlay(view.members.size()); !made) {
        return fail_formation(made.error());
    }
    const auto profile = make_profile(view.members);
    if (!profile) return fail_formation(profile.error());
    begin_membership(now, view);
    const auto me = static_cast<std::size_t>(self - view.members.data());
    if (!late_) {
        std::vector<NodeId> nodes;
        nodes.reserve(view.members.size());
        for (const Member& member : view.members) nodes.push_back(member.node);
        engine::Context& made = make_context(nodes, me, {.epoch = view.epoch}, *profile);
        made.newcomers_from = view.next_rank;
        world_ = std::make_shared<OwnedContext>(*this, made);
        engine_.calls().set_world(made);
    }
    connect(now, view);
    if (allows_further_links()) offers_.begin(now, view, identity_, profile->links);
    count_local_ranks(view);
}

void NodeBody::count_local_ranks(const View& view) {
    const auto me = std::ranges::find(view.members, identity_.node, &Member::node);
    if (me == view.members.end()) return;
    const auto here = static_cast<std::size_t>(loop_->nodes.load());
    progress().set_local_ranks(
        runtime::processes_on_host(runtime::links_of(view.members), view.members.size(),
                                   static_cast<std::size_t>(me - view.members.begin()), here));
}

void NodeBody::tell_seed() {
    const std::uint64_t changes = mesh_.changes() + offers_.changes();
    if (!seed_ || world_ == nullptr || told_changes_ == changes) return;
    told_changes_ = changes;
    for (const engine::PeerReport& report : reports()) {
        if (!report.connected || !report.dialed) continue;
        wire::LinkReport told{
            .rank = report.rank,
            .round_trip = std::chrono::duration_cast<std::chrono::nanoseconds>(report.took),
            .why = printable(report.why, wire::kMaxReportTextBytes),
            .hops = static_cast<std::uint8_t>(
                std::clamp<std::uint32_t>(report.hops, 1, wire::kMaxHops))};
        if (report.hops > 1) {
            told.via = report.via;
        } else if (report.address && !report.address->is_tunnel()) {
            told.address = {report.address->text()};
        }
        seed_->report(told);
    }
}

void NodeBody::fail_formation(const Error& error) {
    if (formed_told_ || formation_failure_) return;
    formation_failure_ = error.within({.host = runtime::host_name(), .operation = "join"});
    look_whether_formed();
}

/// If a member leaves before it was connected to all others, the world cannot form. A member that
/// closed normally and had a link to this node had all its links, so nothing is wrong.
void NodeBody::look_for_casualties() {
    if (formation_failure_) return;
    if (const auto& aborted = engine_.aborted()) {
        formation_failure_ = aborted->within({.host = runtime::host_name(), .operation = "join"});
    }
    // A node that joins a running cluster connects to the members that are left.
    if (!membership_.begun() || late_ || lazy_ || formation_failure_) return;
    std::optional<Error> lost = mesh_.failure();
    if (const auto casualty = engine_.casualty(); casualty && !lost) {
        const Rank rank = membership_.rank_of(casualty->first).value_or(Rank(0));
        lost = Error(Errc::link_closed,
                     fmt::format("rank {} was lost before all members were connected: {}",
                                 rank.value(), casualty->second.cause()),
                     {.rank = public_rank(rank)});
    }
    if (!lost) return;
    formation_failure_ = lost->within({.operation = "join"});
}

void NodeBody::look_whether_formed() {
    if (formed_told_) return;
    look_for_casualties();
    const bool connected =
        membership_.begun() && (lazy_ || (mesh_.complete() && offers_.settled()));
    if (connected && !formation_failure_) require_links();
    if (!connected && !formation_failure_) return;
    formed_told_ = true;
    progress().complete(formed_);
}

/// Under the lock: lets the collectives of a new communicator use shared memory if all its ranks
/// are on one host.
void NodeBody::share_memory(engine::Context& context) {
    if (!allows_further_links() ||
        context.collectives.profile.links.slowest() != schedule::LinkKind::host) {
        return;
    }
    engine_.want_memory(context, config_ ? config_->size("collective_memory") : kSegmentBytes);
}

Result<std::shared_ptr<port::SharedMemory>> NodeBody::allocate_buffer(std::size_t bytes) {
    if (!allows_further_links()) {
        return Error(Errc::unsupported, "the setting link excludes shared memory");
    }
    return allocate_shared(bytes);
}

bool NodeBody::allows_further_links() const {
    return link_choice() != "quic";
}

std::string_view NodeBody::link_choice() const {
    if (!options_.link.empty()) return options_.link;
    return config_ ? config_->choice("link") : "auto";
}

/// With link=shm, fails the formation if a pair has no shared memory.
void NodeBody::require_links() {
    if (lazy_ || link_choice() != "shm") return;
    for (const Member& member : membership_.view().members) {
        const NodeId& node = member.node;
        if (node == identity_.node || offers_.has_link(node)) continue;
        const std::uint32_t rank = member.rank.value();
        formation_failure_ =
            Error(Errc::unsupported,
                  fmt::format("the setting link=shm requires shared memory between all ranks, but "
                              "this rank has none with rank {} because {}",
                              rank, offers_.why_not(node)),
                  {.rank = static_cast<int>(rank), .operation = "join"});
        return;
    }
}

/// The members that formation waits for, and the known reasons.
std::string NodeBody::what_is_missing() const {
    if (!membership_.begun()) return seed_ ? seed_->news() : "no view has arrived";
    std::vector<std::string> missing;
    for (const engine::PeerReport& report : mesh_.reports()) {
        if (report.connected) continue;
        missing.push_back(fmt::format("rank {}: {}", report.rank.value(),
                                      report.why.empty() ? "it has not connected" : report.why));
    }
    const std::size_t count = missing.size();
    if (count > kMostNamed) missing.resize(kMostNamed);
    const View& view = membership_.view();
    return fmt::format("this process, rank {}, is not connected to {} of {} other members; {}{}",
                       own_rank().value(), count, view.members.size() - 1, fmt::join(missing, "; "),
                       count > kMostNamed ? "; ..." : "");
}

Result<void> NodeBody::wait_formed(TimePoint deadline) {
    const TimePoint begun = now();
    for (TimePoint warn_at = begun + kWarnAfter;
         !progress().wait(formed_, std::min(warn_at, deadline)); warn_at += kWarnEvery) {
        const runtime::Progress::Guard guard(progress());
        if (formed_told_) continue;
        if (now() >= deadline) {
            formation_failure_ =
                Error(Errc::timed_out,
                      fmt::format("the cluster did not form in time: {}", what_is_missing()),
                      {.host = runtime::host_name(), .operation = "join"});
            return *formation_failure_;
        }
        NEXAR_LOG_WARNING("the cluster has not formed after {} s: {}",
                          std::chrono::duration_cast<std::chrono::seconds>(now() - begun).count(),
                          what_is_missing());
    }
    if (formation_failure_) return *formation_failure_;
    return {};
}

std::vector<engine::PeerReport> NodeBody::peers() {
    const runtime::Progress::Guard guard(progress());
    return reports();
}

/// Under the lock: how this node reached its peers, with the links that it uses.
std::vector<engine::PeerReport> NodeBody::reports() const {
    std::vector<engine::PeerReport> all = mesh_.reports();
    for (engine::PeerReport& one : all) {
        one.links = engine_.links_of(one.node);
        const auto way = one.tunnel && overlay_ ? overlay_->way_to(one.rank) : std::nullopt;
        if (way) {
            one.hops = way->hops;
            one.via = way->first;
        }
        if (offers_.has_link(one.node))
            one.why += one.why.empty() ? "shared memory" : "; shared memory";
        if (const std::string why = offers_.why_not(one.node); !why.empty()) {
            one.why +=
                fmt::format("{}no shared memory because {}", one.why.empty() ? "" : "; ", why);
        }
    }
    return all;
}

std::optional<TimePoint> NodeBody::next_deadline() const noexcept {
    std::optional<TimePoint> due;
    const auto at = [&](const std::optional<TimePoint>& time) {
        if (time) due = due ? std::min(*due, *time) : time;
    };
    for (const port::Carrier* const one : carriers_) at(one->next_deadline());
    at(mesh_.next_deadline());
    if (overlay_) at(overlay_->next_deadline());
    at(offers_.next_deadline());
    if (seed_) at(seed_->next_deadline());
    at(own_deadline());
    if (rpc_) at(rpc_->next_deadline());
    return due;
}

bool NodeBody::all_idle() const noexcept {
    return engine_.idle() && mesh_.idle() && (!seed_ || seed_->idle());
}

}  // namespace nexar::detail
