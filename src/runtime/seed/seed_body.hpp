#pragma once

#include <map>
#include <memory>
#include <nexar/seed.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/config.hpp"
#include "link/quic/udp_carrier.hpp"
#include "runtime/join/seed_lane.hpp"
#include "runtime/node_body.hpp"
#include "runtime/progress.hpp"
#include "runtime/seed/refusal_log.hpp"
#include "runtime/seed/seed_desk.hpp"
#include "security/cluster_ca.hpp"
#include "security/job_proof.hpp"
#include "security/signing_request.hpp"
#include "security/state_directory.hpp"

namespace nexar::detail {

/// A seed: its desk, its links, its files, and the loop that drives them.
class SeedBody final : public runtime::Driven {
public:
    static Result<std::shared_ptr<SeedBody>> open(const SeedOptions& options);
    ~SeedBody() override;

    std::vector<std::string> addresses() const;
    Result<std::string> create_token(const TokenOptions& options);
    std::string status();
    bool formed();
    bool give_up_on(Rank rank, const std::string& how);
    std::optional<Error> aborted();
    void close();

    /// As NodeBody::let_go().
    static void let_go(std::shared_ptr<SeedBody> body);

    std::span<port::Carrier* const> carriers() const noexcept override { return carriers_; }
    bool turn(TimePoint now) noexcept override;
    std::optional<TimePoint> next_deadline() const noexcept override;

private:
    /// Somebody on a link: a joiner, or a member.
    struct Visitor {
        port::LinkId id{};
        std::string from{};
        bool joiner = false;
        std::optional<Identity> member{};  // from its certificate
        std::unique_ptr<runtime::SeedLane> lane{};
        TimePoint deadline{};  // of a joiner: to say all that it has to say
        bool proved = false;
        bool greeted = false;
        std::optional<Rank> wanted_rank{};
        Epoch told{};                    // the newest view that it was told of
        std::uint64_t told_changes = 0;  // of the status
    };
    /// An admission that is to be told once it was kept.
    struct Answer {
        port::LinkId id{};
        Member member{};
        security::PublicKey key{};
    };
    struct Opened;

    SeedBody() = default;

    Result<std::shared_ptr<const security::Credentials>> new_credentials() const;
    void renew(TimePoint now);
    static Result<Opened> open_state(const SeedOptions& options, security::WallTime now);

    void take_events(TimePoint now);
    void on_up(TimePoint now, port::LinkId id, const port::Up& up);
    void on_down(TimePoint now, port::LinkId id, const Error& reason);
    Result<void> take(port::LinkId id, const wire::FrameHeader& header, port::ConstBytes body);
    Result<void> take_of_member(Visitor& visitor, const wire::FrameHeader& header,
                                port::ConstBytes body);
    Result<void> on_abort(Visitor& visitor, const wire::Abort& abort);
    Result<void> on_proof(Visitor& visitor, const wire::Proof& proof);
    Result<void> on_hello(Visitor& visitor, const wire::Hello& hello);
    Result<void> on_join(Visitor& visitor, const wire::JoinRequest& request);
    Result<void> on_renewal(Visitor& visitor, const wire::Renewal& renewal);
    Result<void> on_link_report(Visitor& visitor, const wire::LinkReport& report);
    Result<void> on_failed_member(Visitor& visitor, const wire::ErrorReport& report);
    Result<security::SigningRequest> read_request(Visitor& visitor,
                                                  const std::vector<std::byte>& der);
    Result<std::array<std::byte, runtime::kBindingBytes>> binding(Visitor& visitor);
    Result<security::TokenTable> tokens() const;
    void refuse(Visitor& visitor, const Error& error);
    void make_room_for_joiners();
    void expire(TimePoint now);
    bool keep();
    void answer_all();
    void answer(Visitor& visitor, const Answer& answer);
    /// Members find a place at the door also while strangers press.
    void keep_places();
    void tell_members(TimePoint now);
    void peers_changed();
    void keep_peers(TimePoint now);
    std::string peers_json() const;

    SteadyClock clock_;
    std::shared_ptr<runtime::Loop> loop_;
    BufferPool pool_{PoolProfile::training()};
    std::unique_ptr<quic::UdpCarrier> carrier_;
    std::vector<port::Carrier*> carriers_;
    std::unique_ptr<const security::ClusterCa> ca_;
    std::optional<security::StateDirectory> state_;
    Descriptor lock_;
    security::TokenTable own_tokens_;  // without a state directory
    std::optional<security::JobSecret> job_secret_;
    std::unique_ptr<const Config> config_;
    std::unique_ptr<runtime::SeedDesk> desk_;
    std::map<port::LinkId, Visitor> visitors_;
    std::vector<Answer> answers_;
    std::uint64_t kept_revision_ = 0;
    std::uint64_t places_revision_ = 0;
    std::map<std::pair<Rank, Rank>, wire::LinkReport> reports_;  // (who, whom)
    std::optional<TimePoint> peers_due_{};
    std::uint64_t peers_changes_ = 0;  // of the desk, that peers.json knows
    runtime::RefusalLog refusal_log_;
    int peers_failures_ = 0;  // in a row
    /// Set while the state directory cannot be written: when to try again.
    std::optional<TimePoint> retry_writing_at_{};
    std::optional<Error> aborted_{};  // what a member said
    TimePoint renew_at_{};
    TimePoint now_{};
    bool closing_ = false;
    bool idle_told_ = false;
    runtime::Completion idle_;
};

}  // namespace nexar::detail
