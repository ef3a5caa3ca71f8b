#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "membership/membership.hpp"
#include "sim/membership_tunnels.hpp"

namespace nexar::testing {

using namespace std::chrono_literals;

/// Members and seeds of a cluster on virtual time: each a real Membership, connected by a network
/// whose delays, losses and cuts follow from one seed. Lanes are reliable and ordered until the
/// path is cut; heartbeats are datagrams. In a sparse topology, only neighbours and seeds are
/// connected directly.
class MembershipWorld {
public:
    struct Settings {
        Duration budget = 500ms;
        Duration delay = 100us;  // of every message; up to twice as long with jitter
        double jitter = 0;
        double loss = 0;       // of datagrams
        double duplicate = 0;  // of datagrams
        Duration late = 0ms;   // datagrams may overtake each other by up to this time
        /// Of a witness, between a vote and its write to disk.
        double crash_before_keeping = 0;
        MembershipTunnels::Settings tunnels{};
    };
    struct Machine {
        Identity self{};
        bool seed = false;
        bool running = false;
        bool waiting = false;  // a process that wants to join; its host refuses no packets
        bool paused = false;
        bool evicted = false;
        bool minority = false;
        Duration slow{};  // timers and messages wait up to this long
        std::unique_ptr<membership::Membership> membership{};
        membership::Vote disk{};  // of a seed
        View view{};              // of the last Decided
        std::deque<std::size_t> inbox{};
        std::optional<TimePoint> wakeup{};
        std::uint64_t wakeup_number = 0;
        TimePoint busy_until{};
        std::vector<NodeId> unreachable{};
    };
    /// Sees every event of every node.
    using Watcher = std::function<void(std::size_t, const membership::Event&)>;
    using MessageWatcher = std::function<void(std::size_t, const membership::Outgoing&)>;

    MembershipWorld(std::uint64_t seed, const Settings& settings);

    /// Forms a cluster in epoch 1: `members` nodes, then `seeds`; the first seed is the witness.
    void form(std::size_t members, std::size_t seeds);

    TimePoint now() const { return now_; }
    Duration elapsed() const { return now_ - TimePoint{}; }
    std::size_t size() const { return machines_.size(); }
    Machine& at(std::size_t index) { return machines_[index]; }
    const Machine& at(std::size_t index) const { return machines_[index]; }
    membership::Membership& membership(std::size_t index) { return *machines_[index].membership; }
    Random& random() { return random_; }
    Settings& settings() { return settings_; }

    std::size_t add_machine(bool seed);
    /// Starts a process on a machine, as a node of this view or as a seed with this vote.
    void start(std::size_t index, const membership::Vote& known);
    /// The process ends at once; nothing that it has not sent is sent.
    void kill(std::size_t index);
    /// The next process on this machine has another incarnation.
    void new_incarnation(std::size_t index);
    void pause(std::size_t index);
    void resume(std::size_t index);
    void cut(std::size_t from, std::size_t to, bool cut);
    void cut_both(std::size_t a, std::size_t b, bool cut);
    bool is_cut(std::size_t from, std::size_t to) const { return path(from, to).cut; }
    void heal();
    /// The paths of a sparse topology; nullptr: the topology is not sparse.
    const MembershipTunnels* tunnels() const { return tunnels_.get(); }
    /// True if messages between two machines need no relay, or if the topology is not sparse.
    bool near(std::size_t a, std::size_t b) const;
    /// After a call to a machine's Membership: takes what it wants to send or report.
    void drain(std::size_t index);
    void hint(std::size_t index, std::size_t about, membership::Hint hint);
    /// Delivers the last heartbeats of a machine again and again.
    void replay(std::size_t index, Duration every, Duration until);
    void call_at(TimePoint when, std::function<void()> call);

    /// Runs until the given time.
    void run_until(TimePoint when);
    void run_for(Duration time) { run_until(now_ + time); }
    /// Runs until `done`, at most for `time`; false if it is not done then.
    bool run_until_done(Duration time, const std::function<bool()>& done);

    void watch(Watcher watcher) { watcher_ = std::move(watcher); }
    void watch_messages(MessageWatcher watcher) { message_watcher_ = std::move(watcher); }
    std::size_t index_of(const NodeId& node) const;
    std::uint64_t steps() const { return steps_; }
    /// Equal in two runs of one seed.
    std::uint64_t trace() const { return trace_; }
    /// Datagrams to a process that has ended are refused, and the sender notices.
    bool refuse_packets = false;

private:
    struct Parcel {
        std::size_t from = 0;
        std::size_t to = 0;
        Identity sender{};
        bool from_seed = false;
        std::uint64_t link = 0;  // of a lane message: lost if the link broke
        bool relayed = false;    // so a cut between the ends does not matter
        bool late = false;       // lost if there is no path any more
        membership::Message message{};
    };
    struct Path {
        bool cut = false;
        std::uint64_t link = 0;  // grows when the link breaks
        TimePoint last{};        // arrival of the last lane message
        std::optional<wire::Heartbeat> beat{};
        Identity beat_from{};
    };
    enum class What : std::uint8_t { parcel, wakeup, call };
    struct Entry {
        TimePoint at{};
        std::uint64_t number = 0;
        std::size_t index = 0;  // parcel, machine or call
        std::uint64_t wakeup = 0;
        What what = What::parcel;
    };

    Path& path(std::size_t from, std::size_t to) { return paths_[from * kMost + to]; }
    const Path& path(std::size_t from, std::size_t to) const { return paths_[from * kMost + to]; }
    void push(Entry entry);
    void step(const Entry& entry);
    void post(std::size_t from, membership::Outgoing&& outgoing);
    void deliver(std::size_t parcel);
    void handle(std::size_t parcel);
    void wake(std::size_t index);
    void schedule(std::size_t index);
    void note(std::uint64_t value);
    void say(std::size_t index, const std::string& text) const;
    Duration any_delay(bool datagram);
    Duration any_delay(bool datagram, std::size_t hops);
    std::optional<MembershipTunnels::Way> way(std::size_t from, std::size_t to, bool datagram);
    bool lost(const Parcel& parcel) const;
    void send(std::size_t from, std::size_t to, const MembershipTunnels::Way& way,
              const membership::Message& message);
    void place_links(std::size_t index);
    std::size_t new_parcel();

    static constexpr std::size_t kMost = MembershipTunnels::kMost;  // machines

    Settings settings_;
    Random random_;
    TimePoint now_{};
    std::vector<Machine> machines_{};
    std::vector<Path> paths_;
    std::unique_ptr<MembershipTunnels> tunnels_{};
    std::vector<Entry> queue_{};  // a heap
    std::vector<Parcel> parcels_{};
    std::vector<std::size_t> free_parcels_{};
    std::vector<std::function<void()>> calls_{};
    std::uint64_t number_ = 0;
    std::uint64_t steps_ = 0;
    std::uint64_t idle_ = 0;  // steps since virtual time last moved
    std::uint64_t trace_ = 0;
    int verbose_ = 0;  // NEXAR_SIM_TRACE=1 prints what happens, =2 heartbeats too
    Watcher watcher_{};
    MessageWatcher message_watcher_{};
};

}  // namespace nexar::testing
