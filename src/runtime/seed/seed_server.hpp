#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <nexar/seed.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "link/common/carrier_options.hpp"
#include "membership/membership.hpp"
#include "port/link.hpp"
#include "runtime/join/host_services.hpp"
#include "runtime/join/seed_lane.hpp"
#include "runtime/seed/refusal_log.hpp"
#include "runtime/seed/seed_desk.hpp"
#include "security/cluster_ca.hpp"
#include "security/job_proof.hpp"
#include "security/signing_request.hpp"
#include "security/state_directory.hpp"
#include "wire/codec.hpp"

namespace nexar::runtime {

/// A seed without its loop and its socket: the desk, the links to joiners and members, its vote on
/// views, and the state directory. Driven like an engine, on real or on virtual time; SeedBody
/// drives it for Seed. One thread at a time may call.
class SeedServer {
public:
    /// Reads, or creates, the CA and the state. `now` is the time of the driver's clock.
    static Result<std::unique_ptr<SeedServer>> open(const SeedOptions& options, Config config,
                                                    HostServices services, TimePoint now);

    /// The options for opening the carrier, except its address.
    Result<link::CarrierOptions> carrier_options() const;
    /// Call once, before all functions below. The carrier must outlive this object.
    Result<void> serve(port::Carrier& carrier, TimePoint now);

    /// Runs one turn, which includes the carrier's. Returns true if anything arrived.
    bool turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    std::vector<std::string> addresses() const;
    Result<std::string> create_token(const TokenOptions& options);
    std::string status() const { return desk_->status(); }
    bool formed() const noexcept { return desk_->formed(); }
    bool has_formed() const noexcept { return desk_->has_formed(); }
    /// The newest view that this seed knows.
    const std::optional<View>& view() const noexcept { return desk_->view(); }
    /// See SeedDesk::ended().
    const std::optional<View>& ended() const noexcept { return desk_->ended(); }
    /// This seed as a view names its witness.
    Witness self() const noexcept {
        return {.seed = NodeId(desk_->state().seed),
                .incarnation = Incarnation(desk_->state().incarnation)};
    }
    bool give_up_on(Rank rank, const std::string& how, TimePoint now);
    const std::optional<Error>& aborted() const noexcept { return aborted_; }

    /// Closes all links; idle() is true when they are gone.
    void close(TimePoint now);
    bool idle() const noexcept { return visitors_.empty(); }

private:
    /// A joiner or a member on a link.
    struct Visitor {
        port::LinkId id{};
        std::string from{};
        bool joiner = false;
        std::optional<Identity> holder{};  // from its certificate
        std::optional<Identity> member{};  // the same, if it is a member or was admitted
        std::unique_ptr<SeedLane> lane{};
        TimePoint deadline{};  // by which it must have sent its request or its Hello
        bool proved = false;
        bool greeted = false;
        std::optional<Rank> wanted_rank{};
        Epoch told{};                    // the newest view that it knows
        std::optional<View> brought{};   // a newer view than the seed's
        std::uint64_t told_changes = 0;  // of the status
    };
    /// An admission to send once the state has been written.
    struct Answer {
        port::LinkId id{};
        Member member{};
        security::PublicKey key{};
    };

    explicit SeedServer(Config config, HostServices services);

    Result<void> open_state(const SeedOptions& options, TimePoint now);
    std::vector<std::string> seeds() const;
    Result<std::shared_ptr<const security::Credentials>> new_credentials() const;
    void renew(TimePoint now);

    // seed_visitors.cpp
    void take_events(TimePoint now);
    void on_up(TimePoint now, port::LinkId id, const port::Up& up);
    void on_down(TimePoint now, port::LinkId id, const Error& reason);
    Result<void> take(port::LinkId id, const wire::FrameHeader& header, port::ConstBytes body);
    Result<void> take_of_member(Visitor& visitor, const wire::FrameHeader& header,
                                port::ConstBytes body);
    Result<void> on_abort(Visitor& visitor, const wire::Abort& abort);
    Result<void> on_proof(Visitor& visitor, const wire::Proof& proof);
    Result<void> on_hello(Visitor& visitor, const wire::Hello& hello);
    void on_holder(Visitor& visitor, const Identity& holder, Epoch knows);
    void ask_for_view(Visitor& visitor);
    Result<void> on_join(Visitor& visitor, const wire::JoinRequest& request);
    Result<void> on_renewal(Visitor& visitor, const wire::Renewal& renewal);
    Result<void> on_link_report(Visitor& visitor, const wire::LinkReport& report);
    Result<void> on_failed_member(Visitor& visitor, const wire::ErrorReport& report);
    static Result<security::SigningRequest> read_request(Visitor& visitor,
                                                         const std::vector<std::byte>& der);
    Result<security::TokenTable> tokens() const;
    void refuse(Visitor& visitor, const Error& error);
    void make_room_for_joiners();
    void expire(TimePoint now);
    void answer_all();
    void answer(Visitor& visitor, const Answer& answer);
    /// Keeps room for handshakes of members under a flood.
    void reserve_for_members();

    // seed_membership.cpp
    Result<void> take_of_voter(Visitor& visitor, const wire::FrameHeader& header,
                               port::ConstBytes body);
    void on_datagram(TimePoint now, port::LinkId id, port::ConstBytes bytes);
    void on_view(Visitor& visitor, const wire::ViewFrame& frame);
    void adopt_brought(TimePoint now);
    void begin_membership(TimePoint now);
    void end_membership();
    bool keep_vote();
    void follow_membership(TimePoint now);
    void propose(TimePoint now);
    void on_decided(TimePoint now, const View& view);
    void review_visitors();
    void send(const membership::Outgoing& outgoing);
    void tell_members();

    // seed_files.cpp
    wire::StoredSeed to_store() const;
    bool keep();
    void peers_changed();
    void drop_old_reports();
    void keep_peers(TimePoint now);
    std::string peers_json() const;

    Config config_;
    HostServices services_;
    port::Carrier* carrier_ = nullptr;
    std::unique_ptr<const security::ClusterCa> ca_;
    std::optional<security::StateDirectory> state_;
    Descriptor lock_;
    std::vector<std::string> other_seeds_;
    security::TokenTable own_tokens_;  // without a state directory
    std::optional<security::JobSecret> job_secret_;
    std::unique_ptr<SeedDesk> desk_;
    std::unique_ptr<membership::Membership> membership_;  // while there is a view
    membership::Vote vote_;                               // as it is kept, or must be
    std::uint64_t votes_ = 0;                             // changes of vote_
    std::uint64_t proposed_changes_ = 0;                  // the desk's joiner_changes()
    std::set<NodeId> proposed_;                           // joiners
    Epoch witness_proposed_{};  // the view in which this seed proposed itself as the witness
    std::map<port::LinkId, Visitor> visitors_;
    std::vector<Answer> answers_;
    std::pair<std::uint64_t, std::uint64_t> kept_revision_{};  // of the desk and of the vote
    std::uint64_t reserved_revision_ = 0;
    std::map<std::pair<Rank, Rank>, wire::LinkReport> reports_;  // by reporter and peer
    std::optional<TimePoint> peers_due_{};
    std::uint64_t peers_changes_ = 0;  // the desk's changes() that peers.json shows
    RefusalLog refusal_log_;
    int peers_failures_ = 0;  // consecutive
    /// Set while the state directory cannot be written: when to try again.
    std::optional<TimePoint> retry_writing_at_{};
    std::optional<Error> aborted_{};  // as a member reported it
    TimePoint renew_at_{};
    TimePoint now_{};
    bool closing_ = false;
};

}  // namespace nexar::runtime
