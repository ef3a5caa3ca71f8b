#pragma once

#include <algorithm>
#include <cstdint>

#include "base/identity.hpp"
#include "base/recorder.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "engine/operation.hpp"

namespace nexar::engine {

class Operation;
struct Context;

/// Records what the engine does in a Recorder, with the engine's time. Does nothing without one.
/// See EventKind for what each event says.
class Recording {
public:
    /// nullptr: records nothing. `recorder` must outlive this object.
    explicit Recording(Recorder* recorder) noexcept
        : recorder_(recorder != nullptr && recorder->on() ? recorder : nullptr) {}

    void advance(TimePoint now) noexcept { now_ = std::max(now_, now); }
    TimePoint now() const noexcept { return now_; }

    void started(const Operation& operation) noexcept {
        if (recorder_ != nullptr && !operation.internal) [[unlikely]] {
            record(operation, Phase::started, 0);
        }
    }
    /// Records the end of an operation, with its error if it has one.
    void ended(const Operation& operation) noexcept {
        if (recorder_ != nullptr && !operation.internal) [[unlikely]] {
            record(operation, Phase::ended, 0);
        }
    }
    /// For a send or a call.
    void waits(const Operation& operation, WaitReason reason) noexcept {
        if (recorder_ != nullptr) [[unlikely]] {
            record(operation, Phase::waits, static_cast<std::uint16_t>(reason));
        }
    }
    /// For a message of a collective to `to`.
    void waits(const Operation& collective, Rank to, std::uint64_t bytes,
               WaitReason reason) noexcept {
        if (recorder_ != nullptr) [[unlikely]] {
            record(collective, to, bytes, reason);
        }
    }
    /// For a send that ended when it was started.
    void sent(const Context& context, Rank to, Tag tag, std::uint64_t bytes) noexcept {
        if (recorder_ != nullptr) [[unlikely]] {
            record_sent(context, to, tag, bytes);
        }
    }
    /// `envelope`: of the message that a receive of this communicator got.
    void matched(const Context& context, const Envelope& envelope) noexcept {
        if (recorder_ != nullptr) [[unlikely]] {
            record(context, envelope);
        }
    }
    /// `reason`: an Errc, or 0.
    void link(EventKind kind, const NodeId& node, std::uint16_t reason) noexcept {
        if (recorder_ != nullptr) [[unlikely]] {
            record(kind, node, reason);
        }
    }
    void communicator(EventKind kind, const Context& context) noexcept {
        if (recorder_ != nullptr) [[unlikely]] {
            record(kind, context);
        }
    }

private:
    enum class Phase : std::uint8_t { started, ended, waits };

    void record(const Operation& operation, Phase phase, std::uint16_t detail) const noexcept;
    void record(const Operation& collective, Rank to, std::uint64_t bytes,
                WaitReason reason) const noexcept;
    void record_sent(const Context& context, Rank to, Tag tag, std::uint64_t bytes) const noexcept;
    void record(const Context& context, const Envelope& envelope) const noexcept;
    void record(EventKind kind, const NodeId& node, std::uint16_t reason) const noexcept;
    void record(EventKind kind, const Context& context) const noexcept;

    Recorder* recorder_;
    TimePoint now_{};
};

}  // namespace nexar::engine
