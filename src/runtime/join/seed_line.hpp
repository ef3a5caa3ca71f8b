#pragma once

#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "link/quic/endpoint.hpp"
#include "port/link.hpp"
#include "runtime/join/seed_lane.hpp"
#include "security/credentials.hpp"
#include "security/job_proof.hpp"
#include "security/join_string.hpp"
#include "security/key_pair.hpp"
#include "security/signing_request.hpp"

namespace nexar::runtime {

/// What a joiner knows and shows.
struct JoinTerms {
    std::vector<Address> seeds{};                     // where the seed may be
    std::optional<security::JoinString> join{};       // either this
    std::optional<security::JobSecret> job_secret{};  // or this
    std::optional<Rank> wanted_rank{};
    std::vector<Address> addresses{};  // where we are reached
    std::string host{};
};

/// What the seed answered.
struct Admitted {
    std::shared_ptr<const security::Credentials> credentials{};
    wire::Welcome welcome{};
};

/// A node's side of what it says to the seed: joins, then keeps a link over which views come, and
/// has its certificate renewed at half its life. A seed that is gone is dialed again and again.
///
/// Sans-I/O: driven like a mesh. What came of it is taken by admission(), view() and failure().
class SeedLine {
public:
    /// The endpoint must outlive it.
    SeedLine(quic::Endpoint& endpoint, JoinTerms terms, security::KeyPair key);

    /// True when the event was about a link to the seed.
    bool handle(TimePoint now, const port::Event& event);
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// Once, when the seed has let us in. The endpoint has the credentials from then on; also after
    /// a renewal, without another admission.
    std::optional<Admitted> admission() { return std::exchange(admission_, std::nullopt); }
    /// The newest view that was not taken yet.
    std::optional<View> view() { return std::exchange(view_, std::nullopt); }
    /// The seed does not let us in, or is not the one that we were told of: nothing follows.
    const std::optional<Error>& failure() const noexcept { return failure_; }
    /// What the line waits for, in words.
    std::string news() const;

    void report(const wire::LinkReport& report);

    void close();
    bool idle() const noexcept { return calls_.empty(); }

private:
    /// A link to the seed, or on its way there.
    struct Call {
        Address to{};
        port::Link* link = nullptr;
        std::unique_ptr<SeedLane> lane{};
        bool as_joiner = false;
        bool over = false;  // was not chosen, or has said all
    };
    /// How long the better address is tried alone before the next one is tried beside it.
    static constexpr Duration kStagger = std::chrono::milliseconds(50);
    static constexpr Duration kFirstPause = std::chrono::milliseconds(50);
    static constexpr Duration kLongestPause = std::chrono::seconds(2);

    void begin_round(TimePoint now);
    void dial_next(TimePoint now);
    bool round_over() const noexcept { return next_seed_ == terms_.seeds.size(); }
    void on_up(TimePoint now, port::LinkId id, const port::Up& up);
    void on_down(TimePoint now, port::LinkId id, const Error& reason);
    void end(port::LinkId id, Call& call, std::string_view why);
    bool calling() const noexcept;
    Result<void> take(port::LinkId id, const wire::FrameHeader& header, port::ConstBytes body);
    Result<void> on_proof(Call& call, const wire::Proof& proof);
    Result<void> on_admission(const wire::Admission& admission);
    Result<void> on_welcome(Call& call, const wire::Welcome& welcome);
    Result<void> on_report(const wire::ErrorReport& report);
    Result<void> ask_to_join(Call& call);
    void renew(TimePoint now);
    Result<std::array<std::byte, kBindingBytes>> binding(const Call& call) const;
    const security::TlsSession& tls(const Call& call) const;
    void plan_renewal(TimePoint now);

    quic::Endpoint* endpoint_;
    JoinTerms terms_;
    std::optional<security::KeyPair> key_;  // until a certificate for it has come
    std::shared_ptr<const security::Credentials> credentials_{};
    std::optional<security::Certificate> ca_{};
    std::map<port::LinkId, Call> calls_;
    std::optional<port::LinkId> talking_{};
    bool proved_ = false;  // the seed knows the job's secret
    std::size_t next_seed_ = 0;
    TimePoint dial_at_{};  // the next seed, or the next round
    Duration pause_ = kFirstPause;
    TimePoint now_{};
    std::optional<TimePoint> renew_at_{};
    bool closing_ = false;

    std::optional<Admitted> admission_{};
    std::optional<View> view_{};
    Epoch epoch_{};
    std::optional<Error> failure_{};
    std::map<std::string, Error> problems_;  // of the last round, by address
    std::string formation_{};
    std::map<Rank, wire::LinkReport> reports_;  // told again to a seed that was started anew
};

}  // namespace nexar::runtime
