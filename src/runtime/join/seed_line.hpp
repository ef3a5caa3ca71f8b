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
/// has its certificate renewed at half its life. A seed that is gone is dialed again and again; one
/// that is silent is dialed again beside the attempts under way. Until there is a view, a node
/// whose place the seed has given away asks to be let in again, with the same key.
///
/// Sans-I/O: driven like a mesh. What came of it is taken by admission(), view(), failure() and
/// end_of_formation().
class SeedLine {
public:
    /// The endpoint must outlive it.
    SeedLine(quic::Endpoint& endpoint, JoinTerms terms, security::KeyPair key);

    /// True when the event was about a link to the seed.
    bool handle(TimePoint now, const port::LinkEvent& event);
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// Once, when the seed has let us in. The endpoint has the credentials from then on; also after
    /// a renewal, without another admission.
    std::optional<Admitted> admission() { return std::exchange(admission_, std::nullopt); }
    /// The newest view that was not taken yet.
    std::optional<View> view() { return std::exchange(view_, std::nullopt); }
    /// The seed does not let us in, or is not the one that we were told of: nothing follows.
    const std::optional<Error>& failure() const noexcept { return failure_; }
    /// What the seed said of why the cluster will not form.
    const std::optional<Error>& end_of_formation() const noexcept { return ended_; }
    /// What the line waits for, in words.
    std::string news() const;

    void report(const wire::LinkReport& report);

    /// Tells the seed that this node aborted the program, and closes.
    void abort(const wire::Abort& abort);
    /// Tells the seed why this node leaves, if something failed.
    void close(const std::optional<Error>& why);
    bool idle() const noexcept { return calls_.empty(); }

private:
    /// A link to the seed, or on its way there.
    struct Call {
        Address to{};
        port::Link* link = nullptr;
        std::unique_ptr<SeedLane> lane{};
        TimePoint begun{};
        bool as_joiner = false;
        bool over = false;  // was not chosen, or has said all
    };
    /// How long the better address is tried alone before the next one is tried beside it.
    static constexpr Duration kStagger = std::chrono::milliseconds(50);
    static constexpr Duration kFirstPause = std::chrono::milliseconds(50);
    static constexpr Duration kLongestPause = std::chrono::seconds(2);
    /// As MeshOptions::beside, beside_again and most_beside.
    static constexpr Duration kBeside = std::chrono::seconds(1);
    static constexpr Duration kBesideAgain = std::chrono::seconds(2);
    static constexpr std::ptrdiff_t kMostBeside = 3;
    /// How often a node that waits for a view shows that it is there: so it learns in this time
    /// that the seed was restarted.
    static constexpr Duration kPing = std::chrono::seconds(1);
    /// After a refusal that may end, such as that of a full cluster.
    static constexpr Duration kRefusedPause = std::chrono::seconds(1);

    void begin_round(TimePoint now);
    void dial_beside(TimePoint now);
    void dial_next(TimePoint now);
    void ping(TimePoint now);
    bool round_over() const noexcept { return next_seed_ == terms_.seeds.size(); }
    void on_up(TimePoint now, port::LinkId id, const port::Up& up);
    void on_down(TimePoint now, port::LinkId id, const Error& reason);
    void end(port::LinkId id, Call& call, std::string_view why);
    bool calling() const noexcept;
    template <class Message>
    void tell(const Message& message);
    Result<void> take(port::LinkId id, const wire::FrameHeader& header, port::ConstBytes body);
    Result<void> on_proof(Call& call, const wire::Proof& proof);
    Result<void> on_admission(const Call& call, const wire::Admission& admission);
    Result<void> on_welcome(Call& call, const wire::Welcome& welcome);
    Result<void> on_report(const Call& call, const wire::ErrorReport& report);
    Result<void> ask_to_join(Call& call);
    void renew(TimePoint now);
    Result<std::array<std::byte, kBindingBytes>> binding(const Call& call) const;
    const security::TlsSession& tls(const Call& call) const;
    void plan_renewal(TimePoint now);

    quic::Endpoint* endpoint_;
    JoinTerms terms_;
    std::optional<security::KeyPair> join_key_;               // until there is a view
    std::optional<security::KeyPair> renewal_key_{};          // until a certificate for it has come
    std::shared_ptr<const security::Credentials> offered_{};  // by an admission without a welcome
    std::shared_ptr<const security::Credentials> credentials_{};
    std::optional<security::Certificate> ca_{};
    std::map<port::LinkId, Call> calls_;
    std::optional<port::LinkId> talking_{};
    bool proved_ = false;  // the seed knows the job's secret
    std::size_t next_seed_ = 0;
    TimePoint dial_at_{};    // the next seed, or the next round
    TimePoint beside_at_{};  // all seeds again, beside the attempts under way
    TimePoint ping_at_{};
    Duration pause_ = kFirstPause;
    TimePoint now_{};
    std::optional<TimePoint> renew_at_{};
    bool closing_ = false;
    bool dismissed_ = false;  // the seed has lost its state: the others know us, it does not

    std::optional<Admitted> admission_{};
    std::optional<View> view_{};
    Epoch epoch_{};
    std::optional<Error> failure_{};
    std::optional<Error> ended_{};
    std::map<std::string, Error> problems_;  // of the last round, by address
    std::optional<Error> refusal_{};         // the last one, for news()
    std::string formation_{};
    std::map<Rank, wire::LinkReport> reports_;  // told again to a seed that was started anew
};

}  // namespace nexar::runtime
