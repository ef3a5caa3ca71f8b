#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nexar/error.hpp>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/types.hpp"

#include "wire/context_messages.hpp"
#include "wire/frame.hpp"
#include "wire/membership_messages.hpp"
#include "wire/routing_messages.hpp"
#include "wire/seed_messages.hpp"

/// The messages as values. None names its sender: the connection on which a frame arrives
/// identifies it. Limits are in wire/limits.hpp, layouts in wire/describe.hpp and docs/protocol.md.
namespace nexar::wire {

/// How a payload is compressed. Numbers are stable.
enum class PayloadCodec : std::uint8_t { none = 0 };

/// The fields by which the engine matches messages. The order of headers on the eager lane is the
/// matching order.
struct MessageHeader {
    ContextId context{};
    Sequence sequence{};
    Tag tag{};
    std::uint64_t size = 0;     // bytes of payload
    bool awaits_grant = false;  // the payload starts only after a Grant
    bool synchronous = false;   // the sender waits for the match
    bool from_reserve = false;  // uses credits of the context's reserve, not of the shared pool
    PayloadCodec codec = PayloadCodec::none;

    friend bool operator==(const MessageHeader&, const MessageHeader&) noexcept = default;
};

/// The payload of `size` bytes, at most kMaxEagerBytes, follows this frame on the same lane. It
/// never awaits a grant: without payload credit, even a small message is sent with a BulkHeader.
struct EagerHeader : MessageHeader {
    static constexpr FrameType kType = FrameType::eager;
    friend bool operator==(const EagerHeader&, const EagerHeader&) noexcept = default;
};

/// The payload of `size` bytes, at least 1, arrives on a bulk stream whose preamble names (context,
/// sequence).
struct BulkHeader : MessageHeader {
    static constexpr FrameType kType = FrameType::bulk;
    friend bool operator==(const BulkHeader&, const BulkHeader&) noexcept = default;
};

/// Identifies a host, so that two nodes can tell that they share one; all zero: unknown.
using HostId = std::array<std::byte, 16>;

/// A bit of Hello::features and Welcome::features: the sender of the Hello answers the Welcome with
/// a Confirm.
inline constexpr std::uint64_t kFeatureConfirm = 1;
/// A bit of the features of a seed's Welcome: the cluster has formed, and the receiver joins it.
inline constexpr std::uint64_t kFeatureFormed = 2;

/// The first frame of the side that opened a connection.
struct Hello {
    static constexpr FrameType kType = FrameType::hello;

    std::uint8_t min_version = kProtocolVersion;  // protocol versions that the sender speaks
    std::uint8_t max_version = kProtocolVersion;
    std::uint64_t features = 0;  // bits that the sender supports; receivers ignore unknown ones
    Epoch epoch{};               // the last view that the sender knows; 0: none
    std::string software{};      // for logs: "nexar 0.1.0"
    std::optional<Rank> wanted_rank{};
    HostId host_id{};

    friend bool operator==(const Hello&, const Hello&) = default;
};

/// Fails with version_mismatch if the sender does not speak this build's version. The message calls
/// this side `us`.
Result<void> check_version(const Hello& hello, std::string_view us);

/// A setting that is equal on all members.
struct Setting {
    std::string name{};
    std::string value{};
    std::string origin{};  // where the sender got it from, for display

    friend bool operator==(const Setting&, const Setting&) = default;
};

/// The reply that accepts a Hello.
struct Welcome {
    static constexpr FrameType kType = FrameType::welcome;

    std::uint8_t version = kProtocolVersion;  // chosen from the Hello's range
    std::uint64_t features = 0;               // those of the Hello that both sides use
    Epoch epoch{};
    Rank rank{};  // the receiver's, below world_size
    std::uint32_t world_size = 1;
    std::uint64_t payload_credit_bytes = 0;  // how much the receiver may send unmatched
    std::uint32_t header_credits = 0;
    std::vector<Setting> settings{};  // strictly ascending by name, compared as bytes

    friend bool operator==(const Welcome&, const Welcome&) = default;
};

/// The reply to a Welcome between two members; tells the receiver that both ends use this link.
struct Confirm {
    static constexpr FrameType kType = FrameType::confirm;

    Epoch epoch{};  // the view that the sender is in

    friend bool operator==(const Confirm&, const Confirm&) noexcept = default;
};

/// Offers the peer a second link of another kind.
struct LinkOffer {
    static constexpr FrameType kType = FrameType::link_offer;

    std::string kind{};
    std::vector<std::byte> invitation{};  // opaque except to that kind

    friend bool operator==(const LinkOffer&, const LinkOffer&) = default;
};

/// The reply to a LinkOffer of a link that cannot be had; otherwise the link itself is the reply.
struct LinkRefusal {
    static constexpr FrameType kType = FrameType::link_refusal;

    std::string kind{};
    std::string why{};  // for display

    friend bool operator==(const LinkRefusal&, const LinkRefusal&) = default;
};

/// Tells the peer that this end has the link that was offered and reads it. Neither end uses the
/// link before it has this frame: an end that sent something on it and left at once would otherwise
/// be gone before its peer knew the link.
struct LinkReady {
    static constexpr FrameType kType = FrameType::link_ready;

    std::string kind{};

    friend bool operator==(const LinkReady&, const LinkReady&) = default;
};

/// The last frame of a lane on one link: the lane continues on another link.
struct Moved {
    static constexpr FrameType kType = FrameType::moved;

    std::uint64_t position = 0;  // of the first byte after this frame, see Preamble

    friend bool operator==(const Moved&, const Moved&) noexcept = default;
};

/// Tells a peer why something failed. A code that this build does not know is kept as its number,
/// and remedy() still knows its group.
struct ErrorReport {
    static constexpr FrameType kType = FrameType::error_report;

    Errc code = Errc::malformed;
    Epoch epoch{};
    std::string text{};
    std::optional<Rank> rank{};  // the rank concerned
    std::optional<ContextId> context{};
    std::optional<Sequence> sequence{};

    friend bool operator==(const ErrorReport&, const ErrorReport&) = default;
};

/// The report of a local error. Its text is truncated and escaped so that it always encodes.
ErrorReport report_of(const Error& error, Epoch epoch);

/// A rank aborted the program: all operations fail on every member that receives this. Members
/// forward it, so the sender need not be `rank`.
struct Abort {
    static constexpr FrameType kType = FrameType::abort;

    std::int32_t code = 0;  // from the caller
    Rank rank{};            // who aborted; its rank in the cluster
    std::string text{};     // the reason, from the caller

    friend bool operator==(const Abort&, const Abort&) = default;
};

/// Shows that the sender is alive, and measures the round trip: the receiver of an echo computes
/// now - echo - echo_delay on its own clock. Both fields are 0 until the sender has received a
/// heartbeat.
struct Heartbeat {
    static constexpr FrameType kType = FrameType::heartbeat;

    Epoch epoch{};
    std::uint64_t number = 0;
    std::chrono::nanoseconds sent_at{};     // sender's monotonic clock, not negative
    std::chrono::nanoseconds echo{};        // sent_at of the peer's last heartbeat
    std::chrono::nanoseconds echo_delay{};  // from its arrival to this one's departure
    std::uint64_t counter = 0;              // grows whenever the sender refutes a suspicion
    bool wants_answer = false;              // the receiver sends a heartbeat at once

    friend bool operator==(const Heartbeat&, const Heartbeat&) noexcept = default;
};

/// The pool that a credit belongs to. Numbers are stable.
enum class CreditPool : std::uint8_t {
    shared = 1,
    collective = 2,          // for the collectives of a communicator
    communicator = 3,        // the reserve for its messages
    collective_reserve = 4,  // only for its oldest collective
};

/// Returns credits to the receiver of this frame, which it may use to send unmatched messages. At
/// least one of the two amounts is not 0. `context` is 0 for the shared pool and names the
/// communicator for all others.
struct Credit {
    static constexpr FrameType kType = FrameType::credit;

    CreditPool pool = CreditPool::shared;
    ContextId context{};
    std::uint64_t payload_bytes = 0;
    std::uint32_t headers = 0;

    friend bool operator==(const Credit&, const Credit&) noexcept = default;
};

/// A message was matched: its sender may now send up to `window_bytes` of the payload.
struct Grant {
    static constexpr FrameType kType = FrameType::grant;

    ContextId context{};
    Sequence sequence{};
    std::uint64_t window_bytes = 0;
    std::vector<std::byte> link{};  // opaque except to the link: a key, a handle

    friend bool operator==(const Grant&, const Grant&) = default;
};

/// Numbers are stable.
enum class WithdrawStep : std::uint8_t {
    asked = 1,     // the sender of the message asks
    done = 2,      // the receiver agrees: nobody gets the message
    received = 3,  // the receiver refuses: it was too late
};

/// Withdraws a bulk message, if it is not too late.
struct Withdraw {
    static constexpr FrameType kType = FrameType::withdraw;

    ContextId context{};
    Sequence sequence{};
    WithdrawStep step = WithdrawStep::asked;

    friend bool operator==(const Withdraw&, const Withdraw&) noexcept = default;
};

/// Where the payload of a call or of a collective message is. Numbers are stable.
enum class PayloadPlace : std::uint8_t {
    lane = 0,    // after this frame on the same lane, at most kMaxEagerBytes
    stream = 1,  // at least 1 byte, on a stream whose preamble names it
};

/// A message of a collective, identified by (context, operation, message) instead of matching. The
/// payload follows on the same lane, at most kMaxEagerBytes, or arrives on a stream of lane
/// `collective` whose preamble names (context, sequence).
struct CollectiveHeader {
    static constexpr FrameType kType = FrameType::collective;

    ContextId context{};
    Sequence sequence{};            // per sender, receiver and context, from 0
    std::uint64_t operation = 0;    // number of the collective in its communicator, from 0
    std::uint32_t message = 0;      // number within the collective, per ordered pair
    std::uint64_t size = 0;         // bytes of payload
    std::uint64_t fingerprint = 0;  // of the sender's call: what must be equal on all ranks
    PayloadPlace place = PayloadPlace::lane;
    bool from_reserve = false;  // uses credits of the collective reserve
    PayloadCodec codec = PayloadCodec::none;

    friend bool operator==(const CollectiveHeader&, const CollectiveHeader&) noexcept = default;
};

/// The sender's call of a collective does not match the fingerprint that it received, or the sender
/// has been waiting and asks whether the calls match.
struct CollectiveMismatch {
    static constexpr FrameType kType = FrameType::collective_mismatch;

    ContextId context{};
    std::uint64_t operation = 0;
    std::uint64_t expects = 0;  // bytes from the receiver of which none has arrived
    std::string description{};  // of the sender's own call

    friend bool operator==(const CollectiveMismatch&, const CollectiveMismatch&) = default;
};

/// A collective failed at a rank; it fails at all other ranks that are still in it.
struct CollectiveAbort {
    static constexpr FrameType kType = FrameType::collective_abort;

    ContextId context{};
    std::uint64_t operation = 0;
    Errc code = Errc::malformed;  // unknown ones are kept as in ErrorReport
    Rank rank{};                  // where it failed
    bool gone = false;            // that rank left: no later operation can run either
    std::string text{};

    friend bool operator==(const CollectiveAbort&, const CollectiveAbort&) = default;
};

/// Calls a function of the receiver, which answers every request exactly once unless the link
/// fails.
struct Request {
    static constexpr FrameType kType = FrameType::request;

    CallId call{};                         // the sender's previous call plus one
    std::chrono::nanoseconds time_left{};  // until the caller gives up; 0: never
    std::uint16_t function = 0;            // 0 if `name` is not empty
    std::string name{};                    // empty: `function` identifies it
    std::uint64_t size = 0;                // bytes of payload
    PayloadPlace place = PayloadPlace::lane;

    friend bool operator==(const Request&, const Request&) = default;
};

/// The answer to a request: a payload or an error.
struct Response {
    static constexpr FrameType kType = FrameType::response;

    CallId call{};
    Errc code{};         // 0: success; unknown ones are kept as in ErrorReport
    std::string text{};  // empty on success
    std::uint64_t size = 0;
    PayloadPlace place = PayloadPlace::lane;

    friend bool operator==(const Response&, const Response&) = default;
};

/// The caller no longer waits. The callee answers the request nevertheless.
struct Cancel {
    static constexpr FrameType kType = FrameType::cancel;

    CallId call{};

    friend bool operator==(const Cancel&, const Cancel&) noexcept = default;
};

using AnyMessage =
    std::variant<Hello, Welcome, ErrorReport, Heartbeat, Credit, Grant, Withdraw, Confirm, Abort,
                 LinkOffer, LinkRefusal, LinkReady, Moved, EagerHeader, BulkHeader, ContextBegin,
                 ContextEnd, CollectiveHeader, CollectiveMismatch, CollectiveAbort, Request,
                 Response, Cancel, Proof, JoinRequest, Admission, ViewFrame, Formation, Renewal,
                 LinkReport, StoredTokens, StoredSeed, Suspicion, Ballot, Revoke, Agreement,
                 NewWorld, EnvelopeFrame, LinkState, PathRequest>;

}  // namespace nexar::wire
