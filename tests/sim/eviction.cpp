#include "eviction.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;

engine::EngineOptions eviction_options() {
    engine::EngineOptions options;
    options.awaits_verdicts = true;
    return options;
}

Rank rank_of(std::size_t i) {
    return Rank(static_cast<std::uint32_t>(i));
}

}  // namespace

Eviction::Eviction(std::uint64_t seed, std::size_t nodes)
    : seed_(seed),
      random_(seed),
      cluster_(seed, nodes, eviction_options()),
      victim_(random_.below(nodes)),
      how_(static_cast<Failure>(random_.below(kFailures))),
      evicted_(nodes) {
    echo_.name = "echo";
    std::vector<std::size_t> all;
    std::vector<std::size_t> survivors;
    for (std::size_t i = 0; i < nodes; ++i) {
        all.push_back(i);
        if (i != victim_) survivors.push_back(i);
        cluster_.node(i).on_done = [this](engine::Operation& done) { on_done(done); };
        engine(i).calls().set_world(cluster_.context(i, 0));
        NEXAR_ASSERT(engine(i).calls().add(echo_).has_value());
        engine(i).set_view(view(kBefore, true));
    }
    add_group(ContextId(10), all);
    add_group(ContextId(11), all);
    add_group(ContextId(12), {survivors[0], victim_});
    if (survivors.size() < 2) return;
    add_group(ContextId(13), survivors);
    add_group(ContextId(14), {survivors[1], survivors[0]});
}

View Eviction::view(Epoch epoch, bool with_victim) const {
    View made{.epoch = epoch};
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
        if (i == victim_ && !with_victim) continue;
        made.members.push_back({.node = cluster_.member(i), .rank = rank_of(i)});
    }
    return made;
}

void Eviction::add_group(ContextId id, std::vector<std::size_t> nodes) {
    Group& group = groups_.emplace_back();
    group.has_victim = std::ranges::find(nodes, victim_) != nodes.end();
    group.next.resize(nodes.size());
    std::vector<NodeId> members;
    for (const std::size_t node : nodes) members.push_back(cluster_.member(node));
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        group.contexts.push_back(&engine(nodes[rank]).add_context(id, members, rank_of(rank)));
    }
    group.nodes = std::move(nodes);
}

void Eviction::run(int steps) {
    ASSERT_TRUE(cluster_.connect());
    serve_later();
    const auto failure = static_cast<int>(random_.below(static_cast<std::uint64_t>(steps) / 2));
    std::vector<int> evictions(cluster_.size());
    for (int& at : evictions) at = failure + static_cast<int>(random_.below(60));
    const int back = *std::ranges::max_element(evictions) + 1;
    for (int i = 0; i < std::max(steps, back + 1); ++i) {
        if (i == failure) fail();
        for (std::size_t node = 0; node < cluster_.size(); ++node) {
            if (i == evictions[node] && node != victim_) evict(node);
        }
        if (i == back) go_on();
        step();
        if (random_.chance(0.3)) cluster_.world().run_for(Duration(random_.below(2'000'000)));
    }
    finish_collectives();
    cluster_.world().run_for(50ms);
    engine(victim_).expel(kAfter);
    cluster_.node(victim_).settle();
    const bool all = cluster_.world().run_until(
        [&] { return std::ranges::all_of(asked_, [](const auto& one) { return one->ended > 0; }); },
        5min);
    EXPECT_TRUE(all) << "some operations never end";
    serving_ = false;
    cluster_.world().run_for(100ms);
}

Eviction::Asked& Eviction::ask(std::size_t at, std::size_t group) {
    Asked& asked = *asked_.emplace_back(std::make_unique<Asked>());
    asked.owner = this;
    asked.at = at;
    asked.group = group;
    asked.concerns_victim = groups_[group].has_victim;
    return asked;
}

template <class Operation>
void Eviction::start(Asked& asked, Operation& operation) {
    operation.owner = &asked;
    const Group& group = groups_[asked.group];
    engine(asked.at).start(*group.contexts[asked.rank], operation);
    cluster_.node(asked.at).settle();
}

void Eviction::step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 50) {
        message();
    } else if (choice < 60) {
        wait_for_ever();
    } else if (choice < 85) {
        const std::size_t group = random_.below(groups_.size());
        collective(group, static_cast<std::uint32_t>(random_.below(groups_[group].nodes.size())));
    } else {
        call();
    }
}

/// A send and its receive, in any order.
void Eviction::message() {
    const std::size_t group = random_.below(groups_.size());
    const std::size_t world = groups_[group].nodes.size();
    const auto from = static_cast<std::uint32_t>(random_.below(world));
    const auto to = static_cast<std::uint32_t>(random_.below(world));
    const std::uint64_t tag = next_tag_++;
    const std::size_t bytes =
        random_.chance(0.3) ? 60'000 + random_.below(200'000) : random_.below(20'000);
    const bool send_first = random_.chance(0.5);
    const bool from_any = random_.chance(0.3);
    if (send_first) send(group, from, to, tag, bytes);
    receive(group, from, to, tag, bytes, from_any);
    if (!send_first) send(group, from, to, tag, bytes);
}

void Eviction::send(std::size_t group, std::uint32_t from, std::uint32_t to, std::uint64_t tag,
                    std::size_t bytes) {
    const std::size_t at = groups_[group].nodes[from];
    if (!runs(at)) return;
    Asked& asked = ask(at, group);
    asked.rank = from;
    asked.memory = pattern(tag, bytes);
    asked.shown = asked.memory;
    asked.send.to = Rank(to);
    asked.send.tag = Tag(tag);
    asked.send.content = {&asked.shown, 1};
    asked.send.synchronous = random_.chance(0.3);
    start(asked, asked.send);
}

void Eviction::receive(std::size_t group, std::uint32_t from, std::uint32_t to, std::uint64_t tag,
                       std::size_t bytes, bool from_any) {
    const std::size_t at = groups_[group].nodes[to];
    if (!runs(at)) return;
    Asked& asked = ask(at, group);
    asked.rank = to;
    asked.memory.resize(bytes);
    asked.expected = pattern(tag, bytes);
    asked.region = asked.memory;
    asked.receive.pattern = {.source = Rank(from), .tag = Tag(tag)};
    if (from_any) asked.receive.pattern.source.reset();
    asked.receive.content = {&asked.region, 1};
    start(asked, asked.receive);
}

/// A receive or a probe that nothing matches, in a communicator that the eviction ends.
void Eviction::wait_for_ever() {
    const std::size_t group = random_.below(3);
    const auto rank = static_cast<std::uint32_t>(random_.below(groups_[group].nodes.size()));
    const std::size_t at = groups_[group].nodes[rank];
    if (!runs(at)) return;
    Asked& asked = ask(at, group);
    asked.rank = rank;
    engine::Pattern pattern{.source = {}, .tag = Tag(1'000'000 + next_tag_++)};
    if (random_.chance(0.5)) {
        pattern.source = rank_of(random_.below(groups_[group].nodes.size()));
    }
    if (random_.chance(0.5)) {
        asked.probe.pattern = pattern;
        start(asked, asked.probe);
    } else {
        asked.memory.resize(100);
        asked.region = asked.memory;
        asked.receive.pattern = pattern;
        asked.receive.content = {&asked.region, 1};
        start(asked, asked.receive);
    }
}

/// The next collective of a rank in a communicator.
void Eviction::collective(std::size_t number, std::uint32_t rank) {
    Group& group = groups_[number];
    const std::size_t at = group.nodes[rank];
    if (!runs(at)) return;
    const std::size_t next = group.next[rank]++;
    if (next == group.collectives.size()) {
        constexpr std::array kKinds{schedule::Collective::all_reduce,
                                    schedule::Collective::broadcast, schedule::Collective::barrier,
                                    schedule::Collective::all_gather,
                                    schedule::Collective::all_to_all};
        const CallTerms terms{.what = kKinds.at(random_.below(kKinds.size())),
                              .count = random_.below(random_.chance(0.3) ? 60'000 : 500),
                              .seed = seed_ + next};
        group.collectives.push_back(make_call(terms, group.nodes.size()));
    }
    Asked& asked = ask(at, number);
    asked.rank = rank;
    asked.terms = group.collectives[next].get();
    asked.terms->fill(rank, asked.collective);
    start(asked, asked.collective);
}

/// Lets all ranks of all communicators make the same number of calls.
void Eviction::finish_collectives() {
    for (std::size_t number = 0; number < groups_.size(); ++number) {
        const Group& group = groups_[number];
        for (std::uint32_t rank = 0; rank < group.nodes.size(); ++rank) {
            while (group.next[rank] < group.collectives.size()) collective(number, rank);
        }
    }
}

void Eviction::call() {
    const std::size_t from = random_.below(cluster_.size());
    const std::size_t to = random_.below(cluster_.size());
    if (!runs(from)) return;
    Asked& asked = ask(from, 0);
    asked.rank = static_cast<std::uint32_t>(from);
    asked.concerns_victim = from == victim_ || to == victim_;
    asked.memory = pattern(next_tag_++, random_.below(random_.chance(0.3) ? 100'000 : 1'000));
    asked.expected = asked.memory;
    asked.call.to = rank_of(to);
    asked.call.name = "echo";
    asked.call.content = asked.memory;
    start(asked, asked.call);
}

void Eviction::fail() {
    failed_ = true;
    sim::Fabric& fabric = cluster_.fabric();
    if (how_ == Failure::cut) {
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            if (i != victim_) fabric.partition(cluster_.member(i), cluster_.member(victim_));
        }
    } else {
        cluster_.world().pause(cluster_.node(victim_), cluster_.world().now() + 1h);
    }
    if (how_ != Failure::killed) return;
    const std::vector<port::Link*> links = cluster_.node(victim_).links();
    for (const port::Link* link : links) {
        fabric.break_link(cluster_.carrier(victim_), link->id(), 5ms);
    }
}

void Eviction::evict(std::size_t node) {
    engine(node).set_view(view(kAfter, false));
    const NodeId victim = cluster_.member(victim_);
    engine(node).evict({&victim, 1}, kAfter);
    evicted_[node] = true;
    cluster_.node(node).settle();
}

/// The victim goes on as if nothing had happened. Nothing of it may arrive.
void Eviction::go_on() {
    failed_ = false;
    cluster_.fabric().heal_all();
    cluster_.world().pause(cluster_.node(victim_), cluster_.world().now());
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
        if (i == victim_) continue;
        engine(victim_).send_membership(cluster_.member(i), wire::Suspicion{});
        engine(victim_).send_membership(cluster_.member(i), wire::Heartbeat{});
    }
    cluster_.node(victim_).settle();
}

void Eviction::serve_later() {
    cluster_.world().after(200us, [this] {
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            if (runs(i)) serve(i);
        }
        if (serving_) serve_later();
    });
}

/// Runs the functions that peers have called, and looks at what they say.
void Eviction::serve(std::size_t node) {
    engine::Calls& calls = engine(node).calls();
    while (calls.poll_stopped() != nullptr) {
    }
    while (engine::InCall* const call = calls.poll_call()) {
        EXPECT_FALSE(evicted_[node] && call->caller == rank_of(victim_))
            << "a call of the evicted node arrived";
        calls.respond(*call, std::vector<std::byte>(call->argument));
    }
    while (const auto news = engine(node).poll_membership()) {
        EXPECT_FALSE(evicted_[node] && news->from.node == cluster_.member(victim_))
            << "a message of the evicted node arrived";
    }
    while (engine(node).poll_hint()) {
    }
    cluster_.node(node).settle();
}

void Eviction::on_done(engine::Operation& done) {
    Asked& asked = *static_cast<Asked*>(done.owner);
    ++asked.ended;
    EXPECT_EQ(asked.ended, 1) << "an operation ended twice";
    asked.error = done.error;
    if (done.error) return;
    if (done.kind() == engine::Operation::Kind::receive) {
        EXPECT_EQ(asked.memory, asked.expected);
    } else if (done.kind() == engine::Operation::Kind::call) {
        EXPECT_EQ(asked.call.response, asked.expected);
    } else if (done.kind() == engine::Operation::Kind::collective) {
        asked.terms->expect_result(asked.rank);
    }
    std::ranges::fill(asked.memory, std::byte{0xa5});  // a late read would find this
}

void Eviction::check() const {
    for (const auto& asked : asked_) {
        EXPECT_EQ(asked->ended, 1);
        if (!asked->error || asked->at == victim_) continue;
        EXPECT_TRUE(asked->concerns_victim)
            << "an operation that has nothing to do with the lost node failed: "
            << asked->error->what();
        EXPECT_EQ(asked->error->code(), Errc::membership_changed) << asked->error->what();
    }
}

std::size_t Eviction::failed() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(asked_, [](const auto& one) { return one->error.has_value(); }));
}

}  // namespace nexar::testing
