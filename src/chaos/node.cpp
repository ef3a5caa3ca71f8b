#include "chaos/node.hpp"

#include <algorithm>
#include <utility>

#include "base/config_cluster.hpp"
#include "base/try.hpp"
#include "chaos/machine.hpp"
#include "link/quic/open_carrier.hpp"
#include "runtime/collective_profile.hpp"
#include "runtime/topology_hops.hpp"

namespace nexar::chaos {

namespace {

sim::DatagramHost& add_host(sim::DatagramNet& net, const Address& address,
                            const runtime::HostServices& services) {
    link::CarrierOptions options;
    options.wall_clock = services.wall_clock;
    options.random = services.link_random;
    return net.add_host(address, quic::endpoint_options(std::move(options)));
}

engine::EngineOptions engine_options(Random& random) {
    engine::EngineOptions options;
    options.hash_seed = random.next();
    return options;
}

std::uint64_t number_of(const NodeId& node) {
    std::uint64_t number = 0;
    for (const std::byte b : node.bytes()) number = number * 257 + static_cast<std::uint8_t>(b);
    return number;
}

}  // namespace

Node::Node(sim::DatagramNet& net, Setup setup, Program& program)
    : Node(net, std::move(setup), program, security::KeyPair::generate().value()) {}

Node::Node(sim::DatagramNet& net, Setup setup, Program& program, security::KeyPair key)
    : net_(&net),
      program_(&program),
      config_(std::move(setup.config)),
      host_(&add_host(net, setup.address, services_of(net.world(), setup.random.fork()))),
      engine_(engine_options(setup.random), net.pool()),
      mesh_(engine_, *this, {}),
      signer_(security::LinkStateSigner::create(key).value()),
      members_(engine_),
      seed_(*host_, std::move(setup.terms), std::move(key),
            services_of(net.world(), setup.random.fork())) {
    mesh_.set_addresses({setup.address});
    host_->driven_only_by(*this);
    net.world().add(*this);
}

Node::~Node() {
    net_->world().remove(*this);
    // An engine may end only when its links have let go of its memory.
    while (const auto event = host_->poll_event()) {
        if (!std::holds_alternative<port::Up>(event->what)) engine_.handle(*event);
    }
    net_->kill_process(*host_);
    host_->driven_by_nobody();
    host_->blocked = true;
    engine_.close();
    for (const auto& [id, link] : links_) link->drop("the process was killed");
    quic::Endpoint& endpoint = host_->endpoint();
    endpoint.flush(net_->world().now());
    while (const auto event = endpoint.poll_event()) engine_.handle(*event);
    while (engine_.poll_done() != nullptr) {
    }
}

Result<port::LinkId> Node::dial(TimePoint now, const Address& to, const NodeId& node) {
    return host_->dial(now, {.address = to, .peer = port::MemberTarget{.node = node}});
}

void Node::turn(TimePoint now) {
    turns_ = std::exchange(turned_at_, now) == now ? turns_ + 1 : 0;
    engine_.advance(now);
    host_->on_ready(now);
    host_->flush(now);
    take_events(now);
    tell_ended();
    // What the program starts may end at once.
    do program_->turned(now);
    while (tell_ended());
    follow_closing(now);
    if (engine_.has_wanted()) mesh_.turn(now);
    host_->flush(now);
}

bool Node::tell_ended() {
    bool any = false;
    while (engine::Operation* const operation = engine_.poll_done()) {
        any = true;
        program_->ended(*operation);
    }
    return any;
}

void Node::take_events(TimePoint now) {
    while (auto event = host_->poll_event()) {
        if (overlay_ && overlay_->take(now, *event)) continue;
        if (const auto* const up = std::get_if<port::Up>(&event->what)) {
            links_[event->link] = up->link;
        }
        const bool of_seed = seed_.handle(now, *event);
        if (!of_seed && !mesh_.handle(now, *event)) engine_.handle(*event);
        if (std::holds_alternative<port::Down>(event->what)) {
            links_.erase(event->link);
            host_->forget(event->link);
        }
    }
    follow_seed(now);
    mesh_.turn(now);
    if (members_.begun()) follow_members(now);
    if (overlay_) {
        carry_path_requests(now);
        overlay_->turn(now);
    }
}

void Node::carry_path_requests(TimePoint now) {
    while (const auto request = mesh_.poll_path_request()) {
        engine_.send_path_request(request->to, {.direct = request->direct});
    }
    while (const auto news = engine_.routing_news().poll_path_request()) {
        mesh_.on_path_request(now, news->node, news->message.direct);
    }
}

void Node::follow_seed(TimePoint now) {
    seed_.turn(now);
    if (const auto admitted = seed_.admission()) take_admission(*admitted);
    if (const auto view = seed_.view()) take_view(now, *view);
    if (members_.begun() || failure_) return;
    if (const auto& failure = seed_.failure()) failure_ = *failure;
    if (const auto& ended = seed_.end_of_formation()) failure_ = *ended;
}

void Node::take_admission(const runtime::Admitted& admitted) {
    admitted_ = true;
    identity_ = admitted.credentials->identity();
    first_world_ = admitted.welcome.world_size;
    late_ = (admitted.welcome.features & wire::kFeatureFormed) != 0;
    std::vector<ClusterSetting> settings;
    settings.reserve(admitted.welcome.settings.size());
    for (const wire::Setting& one : admitted.welcome.settings) {
        settings.push_back({one.name, one.value, one.origin});
    }
    auto config = adopt_cluster_settings(config_, settings);
    if (!config) {
        failure_ = config.error();
        return;
    }
    config_ = std::move(*config);
}

void Node::take_view(TimePoint now, const View& view) {
    if (members_.begun() || failure_) return;
    const Member* const own = view.find(identity_.node);
    if (own == nullptr) {
        failure_ = Error(Errc::protocol_violation, "the first view does not contain this node");
        return;
    }
    if (!late_ && view.members.size() < first_world_) {
        failure_ = Error(Errc::membership_changed, "the cluster lost a member while it formed");
        return;
    }
    if (const auto made = make_overlay(); !made) {
        failure_ = made.error();
        return;
    }
    host_->set_members(runtime::addresses_of(view.members));
    const Duration budget = config_.duration("failure_budget");
    engine_.await_verdicts(budget != Duration::zero());
    membership::Options options{.budget = budget, .random_seed = number_of(identity_.node)};
    if (neighbourhood_ && neighbourhood_->sparse()) options.neighbours = neighbourhood_->function();
    members_.begin(now, identity_, view, options);
    engine_.calls().set_own_rank(own->rank);
    program_->viewed(view);
    if (!late_) {
        std::vector<NodeId> nodes;
        nodes.reserve(view.members.size());
        for (const Member& member : view.members) nodes.push_back(member.node);
        schedule::Profile profile = runtime::collective_profile(config_).value();
        runtime::set_members(profile, view.members, neighbourhood());
        engine::Context& made =
            make_context(nodes, static_cast<std::size_t>(own - view.members.data()),
                         {.epoch = view.epoch}, profile);
        made.newcomers_from = view.next_rank;
        has_world_ = true;
        program_->entered(made, nodes);
    }
    mesh_.set_eager(true);
    connect(now, view);
}

/// As NodeBody::make_overlay().
Result<void> Node::make_overlay() {
    NEXAR_TRY_VALUE(topology, routing::Topology::parse(config_.text("topology")));
    neighbourhood_.emplace(topology);
    engine::OverlayOptions options;
    options.relay.hash_seed = engine_.options().hash_seed;
    overlay_ = std::make_unique<engine::Overlay>(
        engine::Overlay::Surroundings{engine_, *host_, signer_, *neighbourhood_}, options);
    mesh_.set_tunnels(true);
    return {};
}

void Node::connect(TimePoint now, const View& view) {
    if (overlay_) {
        overlay_->adopt(now, view, identity_);
        mesh_.set_neighbours(overlay_->neighbours());
    }
    mesh_.adopt(now, view, identity_.node);
}

void Node::follow_members(TimePoint now) {
    members_.turn(now, &seed_);
    while (const auto decided = members_.poll_decided()) {
        host_->set_members(runtime::addresses_of(decided->view.members));
        connect(now, decided->view);
        program_->viewed(decided->view);
    }
    if (late_ && !has_world_) take_new_world();
    const bool waits = late_ && !has_world_ && members_.begun();
    if (waits && runtime::is_eldest(members_.view(), identity_.node)) program_->left_behind();
}

void Node::take_new_world() {
    const auto offered = engine_.poll_new_world(members_.view().epoch);
    if (!offered) return;
    const auto next = runtime::accepted(*offered, identity_);
    if (!next) {
        failure_ = Error(Errc::protocol_violation,
                         "a member named a world that does not contain this process");
        return;
    }
    schedule::Profile profile = runtime::collective_profile(config_).value();
    set_members(profile, next->nodes);
    engine::Context& made = make_context(next->nodes, next->me.value_or(0), next->origin, profile);
    made.newcomers_from = runtime::newcomers_after(members_, next->nodes);
    has_world_ = true;
    program_->entered(made, next->nodes);
}

void Node::set_members(schedule::Profile& profile, std::span<const NodeId> nodes) const {
    runtime::set_members(profile, runtime::members_of(members_, nodes), neighbourhood());
}

engine::Context& Node::make_context(std::span<const NodeId> nodes, std::size_t me,
                                    const wire::ContextOrigin& origin,
                                    const schedule::Profile& profile) {
    return runtime::add_communicator(engine_, identity_.cluster, nodes, me, origin, profile);
}

engine::Context& Node::make_world(engine::Context& parent, const runtime::Successor& next) {
    schedule::Profile profile = parent.collectives.profile;
    set_members(profile, next.nodes);
    engine::Context& made = make_context(next.nodes, next.me.value_or(0), next.origin, profile);
    made.newcomers_from = next.joiners().empty() ? parent.newcomers_from
                                                 : runtime::newcomers_after(members_, next.nodes);
    const wire::NewWorld offer = runtime::offer_of(made, next.nodes, 0);
    for (const NodeId& node : next.joiners()) {
        if (node != identity_.node) engine_.send_new_world(node, offer);
    }
    return made;
}

std::uint64_t Node::epoch_with_others(const engine::Context& context) {
    return readiness_.epoch_with_others(
        net_->world().now(), members_.view(), context, identity_.node, [this](const NodeId& node) {
            return engine_.is_connected(node) || (overlay_ && !overlay_->is_neighbour(node));
        });
}

void Node::close(TimePoint now) {
    if (!parting_) parting_.emplace(now, engine_);
}

void Node::leave(TimePoint now) {
    leave_by_ = now;
    if (!members_.begun() || !members_.can_leave()) return;
    seed_.leave();
    members_.leave(now);
    leave_by_ = now + runtime::Parting::leave_time(overlay_.get());
}

void Node::follow_closing(TimePoint now) {
    if (!parting_ || closing_) return;
    if (!leave_by_) {
        if (!parting_->settled(now, engine_)) return;
        leave(now);
    }
    if (now < leave_by_ && !members_.has_left()) return;
    closing_ = true;
    seed_.close(std::nullopt);
    const bool left = members_.leaving();
    mesh_.close(Error(Errc::closed, "the node was closed"), left);
    engine_.close({}, left);
    tell_ended();
}

bool Node::closed() const noexcept {
    return closing_ && engine_.idle() && mesh_.idle() && seed_.idle();
}

std::string_view Node::spinning() const {
    constexpr unsigned kMost = 2000;
    if (turns_ < kMost) return {};
    const auto due = [&](const std::optional<TimePoint>& time) {
        return time && *time <= turned_at_;
    };
    if (due(host_->next_deadline())) return "the links";
    if (due(seed_.next_deadline())) return "the line to the seed";
    if (due(mesh_.next_deadline())) return "the mesh";
    if (overlay_ && due(overlay_->next_deadline())) return "the overlay";
    if (due(engine_.next_deadline())) return "the engine";
    if (due(members_.next_deadline())) return "the membership";
    if (due(program_->next_deadline())) return "the program";
    return "nothing";
}

std::optional<TimePoint> Node::next_deadline() const {
    std::optional<TimePoint> due = host_->next_deadline();
    const auto at = [&](const std::optional<TimePoint>& time) {
        if (time) due = due ? std::min(*due, *time) : time;
    };
    at(seed_.next_deadline());
    at(mesh_.next_deadline());
    if (overlay_) at(overlay_->next_deadline());
    at(engine_.next_deadline());
    at(members_.next_deadline());
    at(program_->next_deadline());
    if (leave_by_ && !closing_) at(leave_by_);
    if (parting_ && !leave_by_) at(parting_->next_look(turned_at_));
    return due;
}

}  // namespace nexar::chaos
