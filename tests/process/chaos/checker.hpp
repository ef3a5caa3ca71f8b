#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

// Checks the logs of a chaos test. Knows nothing of nexar: only the events below.

namespace chaos_checker {

/// Every log is that of one process, with one event per line. W is the number of a world, N of a
/// step in it, ID of a message or call: the sender's rank, a dot, and a number.
///
///   joined RANK             the process got this rank in the cluster
///   world W PARENT R,R,...  it entered a world with these members
///   view E R,R,...          it knows that these are the members of the cluster in epoch E
///   reduce W N VALUE        it contributes to an all-reduce
///   reduced W N VALUE       the sum that it got
///   send W N ID RANK        it sends a message to this member
///   sent W N ID             the send completed
///   got W N ID OWN          it received a message of world W in its world OWN
///   call ID RANK            it calls this member
///   ran ID                  a call ran here
///   called ID               the call succeeded
///   uncalled ID CODE        the call failed
///   failed W CODE E TEXT    an operation failed; E is 1 if the text names the epoch
///   minority W, evicted W   it learned that it is cut off, or evicted
///   holds W KB BYTES M D    when it entered the world: its resident memory, its heap (0 if it is
///                           unknown), and the numbers of its mappings and descriptors
///   longest CALL US         no call of this kind took longer so far, including time in which the
///                           process was stopped
///   corrupt, stale, hang, trouble ...  what the process itself found wrong
///   end                     it ended on its own
struct Rules {
    /// How much the resident memory of a process may grow, over all worlds after the first ones.
    std::int64_t most_growth_kb = 24 * 1024;
    /// A process keeps the last 64 views, so its heap grows until then.
    std::int64_t warm_up_worlds = 70;
    /// How much the heap of a process may grow per world after the first ones, and how many
    /// mappings and descriptors it may gain. They are compared in runs of at least
    /// `fewest_worlds` such worlds: what a process holds at one moment varies by the 90 KB of a
    /// QUIC connection that is still closing.
    std::int64_t most_heap_per_world = 1024;
    std::int64_t most_handles_gained = 8;
    std::int64_t fewest_worlds = 200;
};

struct Findings {
    std::vector<std::string> wrong{};
    // What the check covered.
    std::int64_t worlds = 0;
    std::int64_t sums = 0;
    std::int64_t messages = 0;
    std::int64_t calls = 0;
    std::int64_t failures = 0;
    std::int64_t evicted = 0;  // processes that noticed it
    std::int64_t removed = 0;  // members that a later view does not have
    std::int64_t most_growth_kb = 0;
    std::int64_t worlds_of_growth = 0;
    /// Of the process that gained most, in runs of `fewest_worlds` worlds.
    std::int64_t heap_per_world = 0;
    std::int64_t mappings_gained = 0;
    std::int64_t descriptors_gained = 0;
    /// Some of the errors, each text once.
    static constexpr std::size_t kMostErrors = 8;
    std::set<std::string> errors{};
    /// The longest call of each kind, of all processes.
    std::map<std::string, std::int64_t> longest_us{};
};

/// The text of one log each.
Findings check(const std::vector<std::string>& logs, const Rules& rules = {});

/// The same for files.
Findings check_files(const std::vector<std::string>& paths, const Rules& rules = {});

std::string describe(const Findings& findings);

}  // namespace chaos_checker
