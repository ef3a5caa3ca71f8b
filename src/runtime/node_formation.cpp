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
#include "runtime/context_id.hpp"
#include "runtime/join/addresses.hpp"
#include "runtime/node_access.hpp"
#include "runtime/progress_options.hpp"

namespace nexar::detail {

namespace {

/// Largest cluster in which all members connect when it forms, for mesh=auto.
constexpr std::size_t kMostEager = 64;

/// Shared memory of a communicator per rank, for nodes that do not read settings.
constexpr std::size_t kSegmentBytes = std::size_t{8} * 1024 * 1024;

constexpr std::size_t kMostNamed = 4;
constexpr Duration kWarnAfter = std::chrono::seconds(5);
constexpr Duration kWarnEvery = std::chrono::seconds(15);

std::vector<Address> addresses_of(const std::vector<Member>& members) {
    std::vector<Address> all;
    for (const Member& member : members) {
        all.insert(all.end(), member.addresses.begin(), member.addresses.end());
    }
    return all;
}

bool wants_eager(std::string_view mesh, std::size_t members) noexcept {
    return mesh == "eager" || (mesh == "auto" && members <= kMostEager);
}

}  // namespace

Result<port::LinkId> NodeBody::dial(TimePoint now, const Address& to, const NodeId& node) {
    return first().dial(now, {.address = to, .peer = port::MemberTarget{.node = node}});
}

void NodeBody::abandon(port::LinkId link) {
    first().abandon(link);
}

Result<void> NodeBody::join(runtime::JoinTerms terms) {
    NEXAR_TRY_VALUE(key, services_.new_key());
    const NodeAccess access(*this);
    seed_ =
        std::make_unique<runtime::SeedLine>(first(), std::move(terms), std::move(key), services_);
    seed_->turn(access.now());
    return {};
}

void NodeBody::form(const View& view) {
    const NodeAccess access(*this);
    take_view(access.now(), view);
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
Result<schedule::Profile> NodeBody::make_profile(const View& view) {
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
    profile.links = runtime::links_of(view);
    return profile;
}

void NodeBody::take_view(TimePoint now, const View& view) {
    if (formation_failure_) return;
    if (view.find(identity_.node) == nullptr) {
        NEXAR_LOG_ERROR("the seed published a view that does not contain this node");
        return;
    }
    first().set_members(addresses_of(view.members));
    // Only the first view makes a world; later ones matter to calls that ask for them.
    if (world_ != nullptr) return;
    const auto profile = make_profile(view);
    if (!profile) return fail_formation(profile.error());
    for (const Member& member : view.members) members_.push_back(member.node);
    const auto me = std::ranges::find(members_, identity_.node) - members_.begin();
    const wire::ContextOrigin origin{.epoch = view.epoch};
    world_ = &engine_.add_context(runtime::context_id(identity_.cluster, origin), members_,
                                  Rank(static_cast<std::uint32_t>(me)), origin);
    world_->collectives.set_profile(*profile);
    share_memory(*world_);
    engine_.calls().set_world(*world_);
    lazy_ = !wants_eager(config_ ? config_->choice("mesh") : "eager", members_.size());
    mesh_.set_eager(!lazy_);
    mesh_.adopt(now, view, identity_.node);
    if (allows_further_links()) offers_.begin(now, view, identity_, profile->links);
    const auto here = static_cast<std::size_t>(loop_->nodes.load());
    progress().set_local_ranks(runtime::processes_on_host(profile->links, members_.size(),
                                                          static_cast<std::size_t>(me), here));
}

void NodeBody::tell_seed() {
    const std::uint64_t changes = mesh_.changes() + offers_.changes();
    if (!seed_ || world_ == nullptr || told_changes_ == changes) return;
    told_changes_ = changes;
    for (const engine::PeerReport& report : reports()) {
        if (!report.connected || !report.address) continue;
        seed_->report(
            {.rank = report.rank,
             .address = {report.address->text()},
             .round_trip = std::chrono::duration_cast<std::chrono::nanoseconds>(report.took),
             .why = printable(report.why, wire::kMaxReportTextBytes)});
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
    if (world_ == nullptr || lazy_ || formation_failure_) return;
    std::optional<Error> lost = mesh_.failure();
    if (const auto casualty = engine_.casualty(); casualty && !lost) {
        const auto rank = std::ranges::find(members_, casualty->first) - members_.begin();
        lost = Error(Errc::link_closed,
                     fmt::format("rank {} was lost before all members were connected: {}", rank,
                                 casualty->second.cause()),
                     {.rank = static_cast<int>(rank)});
    }
    if (!lost) return;
    formation_failure_ = lost->within({.operation = "join"});
}

void NodeBody::look_whether_formed() {
    if (formed_told_) return;
    look_for_casualties();
    const bool connected = world_ != nullptr && (lazy_ || (mesh_.complete() && offers_.settled()));
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
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        const NodeId& node = members_[rank];
        if (node == identity_.node || offers_.has_link(node)) continue;
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
    if (world_ == nullptr) return seed_ ? seed_->news() : "no view has arrived";
    std::vector<std::string> missing;
    for (const engine::PeerReport& report : mesh_.reports()) {
        if (report.connected) continue;
        missing.push_back(fmt::format("rank {}: {}", report.rank.value(),
                                      report.why.empty() ? "it has not connected" : report.why));
    }
    const std::size_t count = missing.size();
    if (count > kMostNamed) missing.resize(kMostNamed);
    return fmt::format("this process, rank {}, is not connected to {} of {} other members; {}{}",
                       world_->me.value(), count, members_.size() - 1, fmt::join(missing, "; "),
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
    at(offers_.next_deadline());
    if (seed_) at(seed_->next_deadline());
    at(engine_.next_deadline());
    if (rpc_) at(rpc_->next_deadline());
    return due;
}

bool NodeBody::all_idle() const noexcept {
    return engine_.idle() && mesh_.idle() && (!seed_ || seed_->idle());
}

}  // namespace nexar::detail
