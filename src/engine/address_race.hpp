#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "port/link_event.hpp"

namespace nexar::engine {

/// Decides when to dial which address of one peer ("happy eyeballs", RFC 8305). Sans-I/O: the owner
/// dials and reports the outcome.
///
/// A round dials the addresses, best first. Each gets a head start of `stagger` over the next,
/// which is dialed earlier only if all attempts so far have failed. The last one may wait for
/// longer, because it is much worse than the others. When no address answers, the race dials all of
/// them again while the older attempts continue: the other end may have forgotten a handshake that
/// was interrupted for too long, and does not always report that. When every attempt has failed the
/// owner ends the round, and the next one begins after a pause that doubles each time.
class AddressRace {
public:
    struct Options {
        Duration stagger = std::chrono::milliseconds(50);
        /// How long the race waits before it dials silent addresses again: the first time, and
        /// later.
        Duration repeat_after = std::chrono::seconds(1);
        Duration repeat_again_after = std::chrono::seconds(2);
        /// The most attempts per address that are in flight at the same time.
        std::size_t most_attempts = 3;
        /// The pause between rounds: the first one, and the longest one.
        Duration pause = std::chrono::milliseconds(100);
        Duration longest_pause = std::chrono::seconds(2);
    };

    /// An address to dial, and its place in the order of the round, 0 for the best.
    struct Attempt {
        Address address{};
        std::size_t place = 0;
    };

    explicit AddressRace(const Options& options) : options_(options), next_pause_(options.pause) {}

    /// A round is in progress.
    bool running() const noexcept { return running_; }
    /// When the next round may begin, while none is in progress.
    TimePoint next_round_at() const noexcept { return at_; }
    /// Begins a round over these addresses, best first. While attempts at others are in flight, the
    /// last address is not dialed before `last_after` has passed.
    void begin(TimePoint now, std::vector<Address> addresses,
               Duration last_after = Duration::zero());

    /// Returns the address to dial now, if any. The owner reports dialed() or failed() and calls
    /// again until the result is nullopt. Without `may_repeat` the race does not dial silent
    /// addresses again.
    std::optional<Attempt> next(TimePoint now, bool may_repeat = true);
    /// The attempt is in flight as `link`. Returns the oldest attempt at the same address when
    /// there are too many: the owner abandons it.
    std::optional<port::LinkId> dialed(TimePoint now, const Attempt& attempt, port::LinkId link);
    /// The attempt could not begin; the next address need not wait.
    void failed(TimePoint now) noexcept { at_ = now; }
    /// The attempt came up or went down, or the owner abandoned it. Other links are ignored.
    void ended(port::LinkId link);

    /// Attempts are in flight.
    bool dialing() const noexcept { return !attempts_.empty(); }
    /// Every address was dialed; next() returns one again when it is time to repeat them.
    bool all_dialed() const noexcept { return next_ == addresses_.size(); }
    /// Every address was dialed and every attempt has ended: the owner ends the round.
    bool exhausted() const noexcept { return running_ && all_dialed() && !dialing(); }
    /// When next() returns an address or the next round may begin, unless an attempt ends earlier.
    TimePoint due() const noexcept { return running_ && all_dialed() ? repeat_at_ : dial_at(); }
    /// When the round, or its latest repetition, began.
    TimePoint pass_began_at() const noexcept { return pass_began_at_; }

    /// Ends the round without success; the next one may begin after the pause.
    void end_round(TimePoint now);
    /// Ends the round, if one is in progress, and sets when the next one may begin.
    void stop_until(TimePoint at) noexcept;
    /// Limits pauses and the time between repetitions, from the next ones on. Duration::max(): they
    /// are as long as the options say.
    void set_longest_wait(Duration longest) noexcept { longest_wait_ = longest; }
    /// Makes the next pause the shortest one again.
    void reset_pause() noexcept { next_pause_ = options_.pause; }
    /// Makes the next pause last at least this long.
    void lengthen_pause(Duration at_least) noexcept;

private:
    struct InFlight {
        port::LinkId link{};
        std::size_t place = 0;
    };

    TimePoint dial_at() const noexcept;

    Options options_;
    bool running_ = false;
    std::vector<Address> addresses_;
    Duration last_after_{};
    std::size_t next_ = 0;   // the address to dial next
    TimePoint at_{};         // when to dial it, or when to begin the next round
    TimePoint repeat_at_{};  // when to dial all addresses again
    TimePoint pass_began_at_{};
    Duration next_pause_;
    Duration longest_wait_ = Duration::max();
    std::vector<InFlight> attempts_;  // oldest first
};

}  // namespace nexar::engine
