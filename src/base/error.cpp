#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <nexar/error.hpp>
#include <nexar/result.hpp>

namespace nexar {

struct Error::Detail {
    Errc code;
    std::string cause;
    ErrorContext context;
    std::string what;
};

namespace {

std::string sentence(Errc code, const std::string& cause, const ErrorContext& context) {
    std::string text = fmt::format("{}: {}", name(code), cause);
    std::string where;
    const auto add = [&where](std::string_view what, const auto& value) {
        fmt::format_to(std::back_inserter(where), "{}{} {}", where.empty() ? "" : ", ", what,
                       value);
    };
    if (context.rank && !context.abort_code) add("rank", *context.rank);
    if (!context.host.empty()) add("host", context.host);
    if (!context.operation.empty()) add("operation", context.operation);
    if (context.sequence) add("sequence", context.sequence->value());
    if (!where.empty()) text += fmt::format(" [{}]", where);
    return text;
}

}  // namespace

Remedy remedy(Errc code) noexcept {
    switch (static_cast<unsigned>(code) / 100) {
        case 1:
            return Remedy::own_fault;
        case 3:
            return Remedy::retry;
        case 4:
            return Remedy::stopped;
        case 5:
            return Remedy::recover;
        default:
            return Remedy::give_up;
    }
}

std::string_view name(Errc code) noexcept {
    switch (code) {
        case Errc::invalid_argument:
            return "invalid_argument";
        case Errc::unsupported:
            return "unsupported";
        case Errc::bad_config:
            return "bad_config";
        case Errc::truncated:
            return "truncated";
        case Errc::reentrant_call:
            return "reentrant_call";
        case Errc::forked:
            return "forked";
        case Errc::unknown_function:
            return "unknown_function";
        case Errc::not_allowed:
            return "not_allowed";
        case Errc::malformed:
            return "malformed";
        case Errc::version_mismatch:
            return "version_mismatch";
        case Errc::limit_exceeded:
            return "limit_exceeded";
        case Errc::unauthenticated:
            return "unauthenticated";
        case Errc::protocol_violation:
            return "protocol_violation";
        case Errc::function_failed:
            return "function_failed";
        case Errc::outcome_unknown:
            return "outcome_unknown";
        case Errc::out_of_memory:
            return "out_of_memory";
        case Errc::timed_out:
            return "timed_out";
        case Errc::link_closed:
            return "link_closed";
        case Errc::too_many_pending:
            return "too_many_pending";
        case Errc::overloaded:
            return "overloaded";
        case Errc::cancelled:
            return "cancelled";
        case Errc::closed:
            return "closed";
        case Errc::aborted:
            return "aborted";
        case Errc::membership_changed:
            return "membership_changed";
        case Errc::minority_partition:
            return "minority_partition";
        case Errc::peer_unreachable:
            return "peer_unreachable";
        case Errc::revoked:
            return "revoked";
        case Errc::evicted:
            return "evicted";
    }
    return "unknown";
}

Error::Error(Errc code, std::string cause, ErrorContext context) {
    std::string what = sentence(code, cause, context);
    detail_ = std::make_shared<const Detail>(
        Detail{code, std::move(cause), std::move(context), std::move(what)});
}

Errc Error::code() const noexcept {
    return detail_->code;
}
std::optional<int> Error::rank() const noexcept {
    return detail_->context.rank;
}
const std::string& Error::host() const noexcept {
    return detail_->context.host;
}
const std::string& Error::operation() const noexcept {
    return detail_->context.operation;
}
std::optional<Sequence> Error::sequence() const noexcept {
    return detail_->context.sequence;
}
std::optional<int> Error::abort_code() const noexcept {
    return detail_->context.abort_code;
}
const std::string& Error::cause() const noexcept {
    return detail_->cause;
}
const char* Error::what() const noexcept {
    return detail_->what.c_str();
}

Error Error::within(const ErrorContext& context) const {
    ErrorContext merged = detail_->context;
    if (!merged.rank) merged.rank = context.rank;
    if (merged.host.empty()) merged.host = context.host;
    if (merged.operation.empty()) merged.operation = context.operation;
    if (!merged.sequence) merged.sequence = context.sequence;
    if (!merged.abort_code) merged.abort_code = context.abort_code;
    return {code(), cause(), std::move(merged)};
}

namespace detail {

void no_value(const Error& error) noexcept {
    std::fprintf(stderr, "nexar: the value of a failed Result was accessed: %s\n", error.what());
    std::abort();
}

void no_error() noexcept {
    std::fprintf(stderr, "nexar: the error of a Result that holds a value was accessed\n");
    std::abort();
}

}  // namespace detail

}  // namespace nexar
