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

#include "wire/frame.hpp"
#include "wire/seed_messages.hpp"

/// The messages as values. None names its sender: who sent a frame is known from the connection
/// that it came on. Limits are in wire/limits.hpp, layouts in wire/describe.hpp and
/// docs/protocol.md.
namespace nexar::wire {

/// How a payload is compressed. Numbers are stable.
enum class PayloadCodec : std::uint8_t { none = 0 };

/// What the engine matches on. Header order on the eager lane is matching order.
struct MessageHeader {
    ContextId context{};
    Sequence sequence{};
    Tag tag{};
    std::uint64_t size = 0;     // bytes of payload
    bool awaits_grant = false;  // the payload starts only after a Grant
    bool synchronous = false;   // the sender wants to know of the match
    bool from_reserve = false;  // its credits are of the context's reserve, not of the shared pool
    PayloadCodec codec = PayloadCodec::none;

    friend bool operator==(const MessageHeader&, const MessageHeader&) noexcept = default;
};

/// The payload of `size` bytes, at most kMaxEagerBytes, follows this frame on the same lane. It
/// never awaits a grant: a message without payload credit travels as BulkHeader, however small.
struct EagerHeader : MessageHeader {
    static constexpr FrameType kType = FrameType::eager;
    friend bool operator==(const EagerHeader&, const EagerHeader&) noexcept = default;
};

/// The payload of `size` bytes, at least 1, comes on a bulk stream whose preamble names (context,
/// sequence).
struct BulkHeader : MessageHeader {
    static constexpr FrameType kType = FrameType::bulk;
    friend bool operator==(const BulkHeader&, const BulkHeader&) noexcept = default;
};

/// Names a host, so that two nodes see that they share one; all zero: not known.
using HostId = std::array<std::byte, 16>;

/// A bit of Hello::features and Welcome::features: the sender of the Hello answers the Welcome with
/// a Confirm.
inline constexpr std::uint64_t kFeatureConfirm = 1;

/// The first frame of the side that opened a connection.
struct Hello {
    static constexpr FrameType kType = FrameType::hello;

    std::uint8_t min_version = kProtocolVersion;  // protocol versions that the sender speaks
    std::uint8_t max_version = kProtocolVersion;
    std::uint64_t features = 0;  // bits that the sender can do; a receiver ignores unknown ones
    Epoch epoch{};               // the last view that the sender knows; 0: none
    std::string software{};      // for logs: "nexar 0.1.0"
    std::optional<Rank> wanted_rank{};
    HostId host_id{};

    friend bool operator==(const Hello&, const Hello&) = default;
};

/// An Error (version_mismatch) when the sender does not speak this build's version; `us` is what
/// the words call this side.
Result<void> check_version(const Hello& hello, std::string_view us);

/// A setting that is equal on all members.
struct Setting {
    std::string name{};
    std::string value{};
    std::string origin{};  // where the sender has it from, for people

    friend bool operator==(const Setting&, const Setting&) = default;
};

/// The answer to a Hello that is accepted.
struct Welcome {
    static constexpr FrameType kType = FrameType::welcome;

    std::uint8_t version = kProtocolVersion;  // chosen from the Hello's range
    std::uint64_t features = 0;               // those of the Hello that both sides use from now on
    Epoch epoch{};
    Rank rank{};  // the receiver's, below world_size
    std::uint32_t world_size = 1;
    std::uint64_t payload_credit_bytes = 0;  // what the receiver may send before it is matched
    std::uint32_t header_credits = 0;
    std::vector<Setting> settings{};  // strictly ascending by name, compared as bytes

    friend bool operator==(const Welcome&, const Welcome&) = default;
};

/// The answer to a Welcome between two members: its receiver now knows that both ends use this
/// link.
struct Confirm {
    static constexpr FrameType kType = FrameType::confirm;

    Epoch epoch{};  // the view that the sender is in

    friend bool operator==(const Confirm&, const Confirm&) noexcept = default;
};

/// Tells a peer why something failed. A code that this build does not know is kept as its number,
/// and remedy() still knows its group.
struct ErrorReport {
    static constexpr FrameType kType = FrameType::error_report;

    Errc code = Errc::malformed;
    Epoch epoch{};
    std::string text{};
    std::optional<Rank> rank{};  // whom it is about
    std::optional<ContextId> context{};
    std::optional<Sequence> sequence{};

    friend bool operator==(const ErrorReport&, const ErrorReport&) = default;
};

/// The report of an error that happened here; its text is cut and cleaned to what the codec takes,
/// so that it always encodes.
ErrorReport report_of(const Error& error, Epoch epoch);

/// A rank aborted the program: everything fails at every member that hears of it. Who hears of it
/// first passes it on, so `rank` need not be the sender.
struct Abort {
    static constexpr FrameType kType = FrameType::abort;

    std::int32_t code = 0;  // as the caller gave it
    Rank rank{};            // who aborted, in the world
    std::string text{};     // why, in the caller's words

    friend bool operator==(const Abort&, const Abort&) = default;
};

/// Shows that the sender lives, and measures the round trip: the receiver of an echo computes
/// now - echo - echo_delay on its own clock. Both are 0 until a first heartbeat was received.
struct Heartbeat {
    static constexpr FrameType kType = FrameType::heartbeat;

    Epoch epoch{};
    std::uint64_t number = 0;
    std::chrono::nanoseconds sent_at{};     // sender's monotonic clock, not negative
    std::chrono::nanoseconds echo{};        // sent_at of the peer's last heartbeat
    std::chrono::nanoseconds echo_delay{};  // from its arrival to this one's departure

    friend bool operator==(const Heartbeat&, const Heartbeat&) noexcept = default;
};

/// Which reserve a credit belongs to. Numbers are stable.
enum class CreditPool : std::uint8_t {
    shared = 1,
    collective = 2,          // of the collectives of a communicator
    communicator = 3,        // the reserve of its messages
    collective_reserve = 4,  // only for the oldest of its collectives
};

/// Gives back what the receiver of this frame may send before it is matched. At least one of the
/// two amounts is not 0; context is 0 for the shared pool, and names the communicator for all
/// others.
struct Credit {
    static constexpr FrameType kType = FrameType::credit;

    CreditPool pool = CreditPool::shared;
    ContextId context{};
    std::uint64_t payload_bytes = 0;
    std::uint32_t headers = 0;

    friend bool operator==(const Credit&, const Credit&) noexcept = default;
};

/// A message was matched: its payload may come, as much of it as the window says.
struct Grant {
    static constexpr FrameType kType = FrameType::grant;

    ContextId context{};
    Sequence sequence{};
    std::uint64_t window_bytes = 0;
    std::vector<std::byte> link{};  // opaque to all but the link: a key, a handle

    friend bool operator==(const Grant&, const Grant&) = default;
};

/// Numbers are stable.
enum class WithdrawStep : std::uint8_t {
    asked = 1,     // by the sender of the message
    done = 2,      // by its receiver: nobody gets it
    received = 3,  // by its receiver: too late
};

/// A bulk message is taken back, if that can be.
struct Withdraw {
    static constexpr FrameType kType = FrameType::withdraw;

    ContextId context{};
    Sequence sequence{};
    WithdrawStep step = WithdrawStep::asked;

    friend bool operator==(const Withdraw&, const Withdraw&) noexcept = default;
};

/// What makes a communicator the one that it is, on every member alike; with the cluster, which
/// both sides know from their certificates.
struct ContextOrigin {
    ContextId parent{};          // 0 for a world
    std::uint64_t creation = 0;  // its number among those made from the parent
    std::uint64_t colour = 0;
    Epoch epoch{};  // of a world

    friend bool operator==(const ContextOrigin&, const ContextOrigin&) noexcept = default;
};

/// Comes before the first message of a communicator: its id is short, so both sides compare all
/// that it stands for.
struct ContextBegin {
    static constexpr FrameType kType = FrameType::context_begin;

    ContextId context{};
    ContextOrigin origin{};
    Rank rank{};  // the sender's, below size
    std::uint32_t size = 1;

    friend bool operator==(const ContextBegin&, const ContextBegin&) noexcept = default;
};

/// Comes after the last message of a communicator that its sender has ended.
struct ContextEnd {
    static constexpr FrameType kType = FrameType::context_end;

    ContextId context{};
    std::uint64_t collectives = 0;  // that it took part in

    friend bool operator==(const ContextEnd&, const ContextEnd&) noexcept = default;
};

/// Where the payload of a call, or of a message of a collective, is. Numbers are stable.
enum class PayloadPlace : std::uint8_t {
    lane = 0,    // behind this frame on the same lane, at most kMaxEagerBytes
    stream = 1,  // at least 1 byte, on a stream whose preamble names it
};

/// A message of a collective: found by (context, operation, message), not by matching. The payload
/// follows on the same lane, at most kMaxEagerBytes, or comes on a stream of lane `collective`
/// whose preamble names (context, sequence).
struct CollectiveHeader {
    static constexpr FrameType kType = FrameType::collective;

    ContextId context{};
    Sequence sequence{};  // of the sender's collective messages to the receiver here, from 0
    std::uint64_t operation = 0;    // number of the collective in its communicator, from 0
    std::uint32_t message = 0;      // number in the collective, per ordered pair
    std::uint64_t size = 0;         // bytes of payload
    std::uint64_t fingerprint = 0;  // of the sender's call: what must be equal on all ranks
    PayloadPlace place = PayloadPlace::lane;
    bool from_reserve = false;  // its credits are of the collective reserve
    PayloadCodec codec = PayloadCodec::none;

    friend bool operator==(const CollectiveHeader&, const CollectiveHeader&) noexcept = default;
};

/// The sender's call of a collective is another one than the fingerprint that it got says, or it
/// waits and asks whether it is.
struct CollectiveMismatch {
    static constexpr FrameType kType = FrameType::collective_mismatch;

    ContextId context{};
    std::uint64_t operation = 0;
    std::uint64_t expects = 0;  // bytes of the receiver's that have not begun to come
    std::string description{};  // of the sender's own call

    friend bool operator==(const CollectiveMismatch&, const CollectiveMismatch&) = default;
};

/// A collective failed at a rank; everybody who is still in it fails too.
struct CollectiveAbort {
    static constexpr FrameType kType = FrameType::collective_abort;

    ContextId context{};
    std::uint64_t operation = 0;
    Errc code = Errc::malformed;  // unknown ones are kept as in ErrorReport
    Rank rank{};                  // whose failure it is
    bool gone = false;            // that rank left: no later operation can run either
    std::string text{};

    friend bool operator==(const CollectiveAbort&, const CollectiveAbort&) = default;
};

/// Calls a function of the receiver. It answers every request once, unless the link fails.
struct Request {
    static constexpr FrameType kType = FrameType::request;

    CallId call{};                         // one more than the sender's last one
    std::chrono::nanoseconds time_left{};  // until the caller stops waiting; 0: it waits for ever
    std::uint16_t function = 0;            // 0 when it has a name
    std::string name{};                    // empty: `function` is its number
    std::uint64_t size = 0;                // bytes of payload
    PayloadPlace place = PayloadPlace::lane;

    friend bool operator==(const Request&, const Request&) = default;
};

/// The answer to a request: a payload, or why there is none.
struct Response {
    static constexpr FrameType kType = FrameType::response;

    CallId call{};
    Errc code{};         // 0: it went well; unknown ones are kept as in ErrorReport
    std::string text{};  // empty when it went well
    std::uint64_t size = 0;
    PayloadPlace place = PayloadPlace::lane;

    friend bool operator==(const Response&, const Response&) = default;
};

/// The caller does not wait any more. The request is answered all the same.
struct Cancel {
    static constexpr FrameType kType = FrameType::cancel;

    CallId call{};

    friend bool operator==(const Cancel&, const Cancel&) noexcept = default;
};

using AnyMessage =
    std::variant<Hello, Welcome, ErrorReport, Heartbeat, Credit, Grant, Withdraw, Confirm, Abort,
                 EagerHeader, BulkHeader, ContextBegin, ContextEnd, CollectiveHeader,
                 CollectiveMismatch, CollectiveAbort, Request, Response, Cancel, Proof, JoinRequest,
                 Admission, ViewFrame, Formation, Renewal, LinkReport, StoredTokens, StoredSeed>;

}  // namespace nexar::wire
