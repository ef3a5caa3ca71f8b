// How a node aborts the program.

#include <stdio.h>  // NOLINT(modernize-deprecated-headers): POSIX's ftrylockfile

#include <cstdlib>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "engine/abort_error.hpp"
#include "runtime/node_access.hpp"

namespace nexar::detail {

namespace {

/// How long abort() waits for the seed before it tells the members.
constexpr Duration kSeedTime = std::chrono::milliseconds(300);
/// How long this process waits, before it ends, for links to members to which it has none.
constexpr Duration kTellTime = std::chrono::milliseconds(500);
/// Longer than links need: they end after half a second without an answer.
constexpr Duration kEndTime = std::chrono::milliseconds(1200);

/// Only these streams: a thread that waits for input holds the lock of its stream.
void flush_output() {
    for (std::FILE* const stream : {stdout, stderr}) {
        if (::ftrylockfile(stream) != 0) continue;
        ::fflush_unlocked(stream);
        ::funlockfile(stream);
    }
}

}  // namespace

void NodeBody::abort(int code, const std::string& why) {
    const wire::Abort frame{
        .code = code, .rank = public_own_rank(), .text = printable(why, wire::kMaxReportTextBytes)};
    const bool exits = config_ && config_->choice("on_abort") == "exit";
    tell_seed_of(frame);
    if (exits) {
        // First, because a launcher may end this process as soon as another one has failed.
        flush_output();
        NEXAR_LOG_ERROR("{}", engine::error_of(frame).cause());
    }
    {
        const NodeAccess access(*this);
        if (closing_) throw Error(Errc::closed, "the node is closed", {.operation = "abort"});
        access->abort(code, frame.text);
    }
    if (exits) end_process(code >= 1 && code <= 255 ? code : 1);
}

/// Tells the seed before the members hear of the abort and fail because of it: a launcher that asks
/// the seed then knows which rank caused their failures. The seed line closes after the message, so
/// its end shows that the seed has it.
void NodeBody::tell_seed_of(const wire::Abort& frame) {
    {
        const NodeAccess access(*this);
        if (!seed_ || closing_ || engine_.aborted()) return;
        if (std::exchange(leaving_seed_, true)) return;
        seed_->abort(frame);
    }
    progress().wait(seed_left_, now() + kSeedTime);
}

void NodeBody::end_process(int status) {
    {
        const NodeAccess access(*this);
        telling_ = true;
    }
    progress().wait(told_, now() + kTellTime);
    {
        const NodeAccess access(*this);
        begin_closing();
    }
    progress().wait(idle_, now() + kEndTime);
    flush_output();
    std::_Exit(status);
}

/// Under the lock: completes the steps that abort() waits for.
void NodeBody::look_at_abort() {
    if (leaving_seed_ && !seed_left_told_ && seed_->idle()) {
        seed_left_told_ = true;
        progress().complete(seed_left_);
    }
    if (telling_ && !told_told_ && engine_.abort_told()) {
        told_told_ = true;
        progress().complete(told_);
    }
}

void NodeBody::check_not_aborted(const char* operation) const {
    const std::optional<Error>& aborted = engine_.aborted();
    if (aborted) throw aborted->within({.operation = operation});
}

}  // namespace nexar::detail
