#pragma once

#include <deque>
#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "engine/address_race.hpp"
#include "membership/membership.hpp"
#include "port/link.hpp"
#include "runtime/join/host_services.hpp"
#include "runtime/join/seed_lane.hpp"
#include "security/credentials.hpp"
#include "security/job_proof.hpp"
#include "security/join_string.hpp"
#include "security/key_pair.hpp"
#include "security/signing_request.hpp"

namespace nexar::runtime {

/// The facts that a joiner knows and the credentials that it presents.
struct JoinTerms {
    std::vector<Address> seeds{};                     // possible addresses of the seeds, best first
    std::optional<security::JoinString> join{};       // either this
    std::optional<security::JobSecret> job_secret{};  // or this
    std::optional<Rank> wanted_rank{};
    std::vector<Address> addresses{};  // at which peers reach this node
    std::string host{};
};

/// The seed's answer.
struct Admitted {
    std::shared_ptr<const security::Credentials> credentials{};
    wire::Welcome welcome{};
};

/// A message of the agreement on views, from a seed.
struct FromSeed {
    Identity from{};
    membership::Message message{};
};

/// A node's side of the conversation with the seeds: it joins, then keeps a link to a seed, and one
/// to the witness of the view if that is another seed. Over these links travel the first view and
/// the messages of the agreement on later views, and the node renews its certificate at half its
/// life. It redials a seed that is gone for ever, and dials a silent one again while older attempts
/// continue. Until there is a view, a node whose place the seed has given away asks to join again
/// with the same key.
///
/// Sans-I/O: driven like a mesh. The results are admission(), view(), failure() and
/// end_of_formation().
class SeedLine {
public:
    /// The carrier must outlive it. `key` is the one that the node joins with.
    SeedLine(port::Carrier& carrier, JoinTerms terms, security::KeyPair key, HostServices services);

    /// Returns true when the event belongs to a link to the seed.
    bool handle(TimePoint now, const port::LinkEvent& event);
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// Returns the admission once, after the seed has admitted this node. From then on the carrier
    /// has the credentials, and after each renewal the new ones, without another admission.
    std::optional<Admitted> admission() { return std::exchange(admission_, std::nullopt); }
    /// Returns the first view that contains this node, once.
    std::optional<View> view() { return std::exchange(view_, std::nullopt); }

    /// Sets the newest view, which a seed that has an older one receives.
    void set_view(const View& view);
    /// Sends a message to a seed; drops it if there is no link to that seed.
    void send_membership(const NodeId& to, const membership::Message& message);
    /// Returns each message of a seed once, after the first view.
    std::optional<FromSeed> poll_membership();
    /// The seed to propose as the witness: the one that this node has a link to, once it has had
    /// none to the view's witness for `patience`. Only the member with the lowest rank ever gets a
    /// result, at most once per `patience`.
    std::optional<Witness> better_witness(TimePoint now, Duration patience);
    /// Set if the seed does not admit this node, or is not the expected one; the line has then
    /// given up.
    const std::optional<Error>& failure() const noexcept { return failure_; }
    /// Why the cluster will not form, as the seed reported.
    const std::optional<Error>& end_of_formation() const noexcept { return ended_; }
    /// What the line is waiting for, in words.
    std::string news() const;

    void report(const wire::LinkReport& report);

    /// This node leaves the cluster, so the seed may close the link: it is not dialed again.
    void leave() noexcept { leaving_ = true; }
    /// Tells the seed that this node aborted the program, and closes.
    void abort(const wire::Abort& abort);
    /// Tells the seed why this node leaves, if something failed.
    void close(const std::optional<Error>& why);
    bool idle() const noexcept { return links_.empty(); }

private:
    /// A link to a seed, or an attempt to establish one.
    struct SeedLink {
        Address to{};
        bool to_witness = false;  // dialed because the other link is not to the witness
        port::Link* link = nullptr;
        std::unique_ptr<SeedLane> lane{};
        bool as_joiner = false;
        bool over = false;  // not chosen, or the conversation is complete
    };
    /// Races addresses like the mesh, with a shorter first pause.
    static constexpr engine::AddressRace::Options kRace{.pause = std::chrono::milliseconds(50)};
    /// How often a node that waits for a view sends a datagram. It notices within this time that
    /// the seed was restarted.
    static constexpr Duration kPing = std::chrono::seconds(1);
    /// The pause after a refusal that may be temporary, such as that of a full cluster.
    static constexpr Duration kRefusedPause = std::chrono::seconds(1);
    /// How often a node that has a link to a seed looks for the witness.
    static constexpr engine::AddressRace::Options kWitnessRace{
        .pause = std::chrono::milliseconds(500), .longest_pause = std::chrono::seconds(10)};
    /// Messages of seeds that wait for poll_membership(); more are dropped, as the protocol allows.
    static constexpr std::size_t kMostMessages = 256;

    void dial(TimePoint now, const engine::AddressRace::Attempt& attempt, bool to_witness);
    engine::AddressRace& race_of(const SeedLink& one) noexcept {
        return one.to_witness ? witness_race_ : race_;
    }
    void on_round_failed(TimePoint now);
    void ping(TimePoint now);
    void look_for_witness(TimePoint now);
    struct SeedAndWitness {
        Identity seed{};
        NodeId witness{};
    };
    std::optional<SeedAndWitness> seed_and_witness() const;
    bool lacks_witness() const;
    /// The link, if a seed has accepted this node as a member on it; else nullptr.
    const SeedLink* attached(const std::optional<port::LinkId>& id) const;
    SeedLink* attached(const std::optional<port::LinkId>& id);
    SeedLink* link_to(const NodeId& seed);
    void on_up(TimePoint now, port::LinkId id, const port::Up& up);
    void on_witness_up(TimePoint now, port::LinkId id, SeedLink& one);
    void open_lane(port::LinkId id, SeedLink& one);
    void on_down(TimePoint now, port::LinkId id, const Error& reason);
    void end(port::LinkId id, SeedLink& one, std::string_view why);
    void greet_as_member(TimePoint now, SeedLink& one);
    void greet_as_joiner(SeedLink& one);
    template <class Message>
    void tell(const Message& message);
    Result<void> ask_to_join(SeedLink& one);
    static std::string software();
    void plan_renewal(TimePoint now);
    void renew(TimePoint now);

    // seed_line_membership.cpp
    void on_view(SeedLink& one, const wire::ViewFrame& frame);
    void on_datagram(const SeedLink& one, port::ConstBytes bytes);
    void push(const SeedLink& one, membership::Message message);
    void bring_view(SeedLink& one);

    // seed_line_frames.cpp
    Result<void> take(port::LinkId id, const wire::FrameHeader& header, port::ConstBytes body);
    Result<void> on_proof(SeedLink& one, const wire::Proof& proof);
    Result<void> on_admission(const SeedLink& one, const wire::Admission& admission);
    Result<void> on_welcome(SeedLink& one, const wire::Welcome& welcome);
    Result<void> on_report(const SeedLink& one, const wire::ErrorReport& report);

    port::Carrier* carrier_;
    JoinTerms terms_;
    HostServices services_;
    std::optional<security::KeyPair> join_key_;               // until there is a view
    std::optional<security::KeyPair> renewal_key_{};          // until its certificate has arrived
    std::shared_ptr<const security::Credentials> offered_{};  // by an admission without a welcome
    std::shared_ptr<const security::Credentials> credentials_{};
    std::optional<security::Certificate> ca_{};
    engine::AddressRace race_{kRace};
    engine::AddressRace witness_race_{kWitnessRace};
    std::map<port::LinkId, SeedLink> links_;
    std::optional<port::LinkId> talking_{};
    std::optional<port::LinkId> witness_link_{};  // if it is another one
    std::map<std::string, NodeId> owners_;        // the seeds that answered, by address
    bool proved_ = false;                         // the seed knows the job's secret
    TimePoint ping_at_{};
    TimePoint now_{};
    std::optional<TimePoint> renew_at_{};
    bool closing_ = false;
    bool leaving_ = false;
    bool dismissed_ = false;  // a seed said that it does not know this member; logged once

    std::optional<Admitted> admission_{};
    std::optional<View> view_{};
    Epoch epoch_{};
    std::optional<View> newest_{};
    std::deque<FromSeed> messages_;
    TimePoint saw_witness_at_{};
    std::optional<Error> failure_{};
    std::optional<Error> ended_{};
    std::map<std::string, Error> problems_;  // of the last round, by address
    std::optional<Error> refusal_{};         // the last one, for news()
    std::string formation_{};
    std::map<Rank, wire::LinkReport> reports_;  // sent again to a restarted seed
};

}  // namespace nexar::runtime
