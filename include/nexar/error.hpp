#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <nexar/export.hpp>
#include <nexar/types.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace nexar {

/// What went wrong. The hundreds digit is the group, see Remedy. The numbers are stable, because
/// error reports carry them between ranks. docs/errors.md says for each code what holds afterwards.
enum class Errc : std::uint16_t {
    // Caller's fault: correct the call or the configuration.
    invalid_argument = 100,
    unsupported = 101,
    bad_config = 102,
    truncated = 103,
    reentrant_call = 104,
    forked = 105,
    unknown_function = 106,
    not_allowed = 107,
    // Give up on this peer or file: its data cannot be used.
    malformed = 200,
    version_mismatch = 201,
    limit_exceeded = 202,
    unauthenticated = 203,
    protocol_violation = 204,
    function_failed = 205,
    outcome_unknown = 206,
    // Retry: the same call may succeed later.
    out_of_memory = 300,
    timed_out = 301,
    link_closed = 302,
    too_many_pending = 303,
    overloaded = 304,
    // Stopped: on request of the program.
    cancelled = 400,
    closed = 401,
    aborted = 402,
    // Recover: the members of the cluster have changed; shrink the communicator, or join again.
    membership_changed = 500,
    minority_partition = 501,
    peer_unreachable = 502,
    revoked = 503,
    evicted = 504,
};

/// What the caller can do about an error.
enum class Remedy : std::uint8_t { own_fault, give_up, retry, stopped, recover };

NEXAR_EXPORT Remedy remedy(Errc code) noexcept;

/// The name of the enumerator, such as "invalid_argument"; "unknown" for an invalid number.
NEXAR_EXPORT std::string_view name(Errc code) noexcept;

/// Where an error happened; unknown fields are empty.
struct ErrorContext {
    std::optional<int> rank{};
    std::string host{};
    std::string operation{};
    std::optional<Sequence> sequence{};
    std::optional<int> abort_code{};
};

/// An operating failure. Inside nexar it is a value (see Result); at the public boundary it is the
/// only exception type that nexar throws. Immutable and cheap to copy; copying never throws.
class NEXAR_EXPORT Error : public std::exception {
public:
    /// `cause` says what happened, to whom, and what the user can do about it.
    Error(Errc code, std::string cause, ErrorContext context = {});

    Errc code() const noexcept;
    std::optional<int> rank() const noexcept;
    const std::string& host() const noexcept;
    const std::string& operation() const noexcept;
    std::optional<Sequence> sequence() const noexcept;
    /// For Errc::aborted: the code passed to Communicator::abort(). rank() is then the rank in the
    /// cluster that called it.
    std::optional<int> abort_code() const noexcept;
    const std::string& cause() const noexcept;

    /// "code: cause [rank, host, operation, sequence]" without the unknown fields. For an abort,
    /// rank and code are only in the cause.
    const char* what() const noexcept override;

    /// A copy of this error whose unknown fields are filled in from `context`.
    Error within(const ErrorContext& context) const;

private:
    struct Detail;
    std::shared_ptr<const Detail> detail_;
};

}  // namespace nexar
