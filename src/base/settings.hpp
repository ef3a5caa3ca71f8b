#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/pool_profile.hpp"
#include "base/recorder.hpp"
#include "base/setting.hpp"

namespace nexar {

// In the order of LogLevel.
inline constexpr std::array<std::string_view, 5> kLogLevels = {"debug", "info", "warning", "error",
                                                               "off"};
inline constexpr std::array<std::string_view, 3> kLinks = {"auto", "quic", "shm"};
inline constexpr std::array<std::string_view, 3> kMeshes = {"auto", "eager", "lazy"};
inline constexpr std::array<std::string_view, 2> kAbortActions = {"exit", "error"};
inline constexpr std::array<std::string_view, 2> kPoolProfiles = {"training", "inference"};
// In the order of Waiting (nexar/node.hpp).
inline constexpr std::array<std::string_view, 3> kProgresses = {"auto", "spin", "sleep"};
inline constexpr std::array<std::string_view, 2> kProtections = {"full", "none"};
// In the order of Recovery (nexar/membership.hpp).
inline constexpr std::array<std::string_view, 3> kRecoveries = {"manual", "automatic", "abort"};
inline constexpr std::array<std::string_view, 2> kReproducibilities = {"ranks", "runs"};

/// Every setting of nexar. Add a setting together with the code that reads it and its row in
/// docs/tuning.md (`nexar config --markdown`).
inline constexpr std::array kSettings = std::to_array<Setting>({
    {.name = "certificate_lifetime",
     .spec = DurationSpec{.fallback = std::chrono::hours(24),
                          .min = std::chrono::seconds(2),
                          .max = std::chrono::hours(90 * 24)},
     .help =
         "How long a certificate issued by a seed is valid; nodes renew theirs halfway through"},
    {.name = "collective_algorithm",
     .spec = TextSpec{.fallback = ""},
     .scope = SettingScope::cluster,
     .help = "Forces algorithms regardless of their predicted cost: "
             "all_reduce=tree:64KiB,all_reduce=ring uses tree up to 64 KiB and ring above; if "
             "empty, nexar picks the fastest according to fabric_* and host_*"},
    {.name = "collective_eager_limit",
     .spec = SizeSpec{.fallback = 1U << 16U, .max = 1U << 16U},
     .scope = SettingScope::cluster,
     .help =
         "Collective messages up to this size share one stream; each larger message gets its own"},
    {.name = "collective_memory",
     .spec = SizeSpec{.fallback = 8U << 20U, .max = 1U << 30U},
     .scope = SettingScope::cluster,
     .help =
         "Shared memory that each rank has for the collectives of a communicator whose ranks are "
         "on one machine; 0 turns such collectives off"},
    {.name = "collective_segment",
     .spec = SizeSpec{.fallback = 0, .max = 1U << 30U},
     .scope = SettingScope::cluster,
     .help = "Size of the segments that collectives forward; 0 picks the best size for each call"},
    {.name = "collective_timeout",
     .spec = DurationSpec{.fallback = std::chrono::minutes(30),
                          .min = std::chrono::milliseconds(1),
                          .max = std::chrono::hours(24 * 365)},
     .help = "How long a collective may take before all its ranks abandon it"},
    {.name = "fabric_bandwidth",
     .spec = SizeSpec{.fallback = 1'300'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help =
         "Bytes per second that a rank can send or receive; the choice of algorithm depends on it"},
    {.name = "fabric_both_bandwidth",
     .spec = SizeSpec{.fallback = 700'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank can send while it receives at the same rate; equal to "
             "fabric_bandwidth where the network is slower than the processors"},
    {.name = "fabric_copy",
     .spec = SizeSpec{.fallback = 12'000'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank can copy in memory"},
    {.name = "fabric_fill",
     .spec = SizeSpec{.fallback = 1U << 17U, .max = 1U << 30U},
     .scope = SettingScope::cluster,
     .help =
         "How many bytes of a message the sender processes before the receiver can start on it"},
    {.name = "fabric_latency",
     .spec = DurationSpec{.fallback = std::chrono::microseconds(10),
                          .min = Duration(1),
                          .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "Time from the moment a small message is sent until it arrives"},
    {.name = "fabric_per_message",
     .spec = DurationSpec{.fallback = std::chrono::microseconds(3),
                          .min = Duration(0),
                          .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "Time that each additional message costs a busy rank"},
    {.name = "fabric_ranks_per_core",
     .spec = RealSpec{.fallback = 1, .min = 1, .max = 1e6},
     .scope = SettingScope::cluster,
     .help =
         "Ranks per processor core of a machine; above 1, nexar prefers algorithms that do less "
         "work in total. nexar run and nexar bench set it when all ranks run on one machine"},
    {.name = "fabric_reduce",
     .spec = SizeSpec{.fallback = 8'000'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank can reduce"},
    {.name = "fabric_shared_bandwidth",
     .spec = SizeSpec{.fallback = 0, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help =
         "Bytes per second that all ranks of one machine together can send to other machines, "
         "and receive from them; 0 means that every rank can reach fabric_bandwidth at the same "
         "time"},
    {.name = "failure_budget",
     .spec = DurationSpec{.fallback = std::chrono::milliseconds(500),
                          .min = Duration(0),
                          .max = std::chrono::minutes(10),
                          .can_be_off = true},
     .scope = SettingScope::cluster,
     .help = "How long a member may be silent until the others agree that it has failed; all other "
             "times of failure detection follow from it. off, or 0s: silence proves nothing, for "
             "debuggers and tests that stop processes; a process that has ended is still noticed"},
    {.name = "formation_timeout",
     .spec = DurationSpec{.fallback = std::chrono::seconds(60),
                          .min = std::chrono::milliseconds(100),
                          .max = std::chrono::hours(24)},
     .help = "How long a join waits for all members to connect"},
    {.name = "host_bandwidth",
     .spec = SizeSpec{.fallback = 0, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help =
         "Replaces fabric_bandwidth for ranks on one machine; 0 uses the rate of shared memory, "
         "or with link=quic fabric_bandwidth"},
    {.name = "host_both_bandwidth",
     .spec = SizeSpec{.fallback = 0, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Replaces fabric_both_bandwidth for ranks on one machine; 0 uses the rate of shared "
             "memory, or with link=quic fabric_both_bandwidth"},
    {.name = "host_fill",
     .spec = SizeSpec{.fallback = 0, .max = 1U << 30U},
     .scope = SettingScope::cluster,
     .help = "Replaces fabric_fill for ranks on one machine; 0 uses that of shared memory, or with "
             "link=quic fabric_fill"},
    {.name = "host_latency",
     .spec =
         DurationSpec{.fallback = Duration(0), .min = Duration(0), .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "Replaces fabric_latency for ranks on one machine; 0 uses that of shared memory, or "
             "with link=quic fabric_latency"},
    {.name = "host_per_message",
     .spec =
         DurationSpec{.fallback = Duration(0), .min = Duration(0), .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "Replaces fabric_per_message for ranks on one machine; 0 uses that of shared memory, "
             "or with link=quic fabric_per_message"},
    {.name = "link",
     .spec = ChoiceSpec{.fallback = "auto", .choices = kLinks},
     .scope = SettingScope::cluster,
     .help = "Kind of link between members: auto uses shared memory on one machine where possible "
             "and QUIC elsewhere; quic and shm allow only that kind"},
    {.name = "link_idle_timeout",
     .spec = DurationSpec{.fallback = std::chrono::seconds(30),
                          .min = std::chrono::seconds(1),
                          .max = std::chrono::hours(1)},
     .help = "A link fails when nothing arrives on it for this long"},
    {.name = "listen",
     .spec = TextSpec{.fallback = ""},
     .help = "Address and UDP port of this node, such as 10.0.0.7:7401; if empty, the node listens "
             "on all addresses and a free port"},
    {.name = "log_level",
     .spec = ChoiceSpec{.fallback = "warning", .choices = kLogLevels},
     .help = "The log contains messages of this level and above"},
    {.name = "log_rate_limit",
     .spec = IntegerSpec{.fallback = 10, .min = 0, .max = 100'000, .unit = "lines/s"},
     .help = "Maximum number of lines per second from each log statement in the source; 0 means no "
             "limit"},
    {.name = "memory_latency",
     .spec =
         DurationSpec{
             .fallback = Duration(250), .min = Duration(1), .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "Time until a rank sees what another rank published in collective_memory"},
    {.name = "memory_per_peer",
     .spec =
         DurationSpec{.fallback = Duration(40), .min = Duration(0), .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "Time that each further rank costs a collective in collective_memory"},
    {.name = "memory_put",
     .spec = SizeSpec{.fallback = 12'000'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank can copy into its collective_memory"},
    {.name = "memory_read",
     .spec = SizeSpec{.fallback = 6'000'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help =
         "Bytes per second that a rank can copy or reduce from the collective_memory of another "
         "rank"},
    {.name = "mesh",
     .spec = ChoiceSpec{.fallback = "auto", .choices = kMeshes},
     .scope = SettingScope::cluster,
     .help = "When members connect to each other: eager when the cluster forms, lazy on first use; "
             "auto is eager up to 64 members"},
    {.name = "min_world",
     .spec = IntegerSpec{.fallback = 1, .min = 1, .max = 16384, .unit = "ranks"},
     .scope = SettingScope::cluster,
     .help = "Fewest ranks with which a program continues: shrink() and elastic_checkpoint() fail "
             "on all ranks instead of making a smaller communicator"},
    {.name = "on_abort",
     .spec = ChoiceSpec{.fallback = "exit", .choices = kAbortActions},
     .help = "What Communicator::abort() does in the calling process once all ranks know: exit "
             "ends the process with the given code, error returns to the caller"},
    {.name = "pool_profile",
     .spec = ChoiceSpec{.fallback = "training", .choices = kPoolProfiles},
     .help = "How many idle buffers of each size the buffer pool keeps"},
    {.name = "progress",
     .spec = ChoiceSpec{.fallback = "auto", .choices = kProgresses},
     .help = "What a thread does while it waits: auto polls for the time given by spin, then "
             "sleeps, and sleeps sooner if ranks outnumber processors; spin polls all the time; "
             "sleep never polls"},
    {.name = "protection",
     .spec = ChoiceSpec{.fallback = "full", .choices = kProtections},
     .scope = SettingScope::cluster,
     .help = "full encrypts all traffic; none sends data in the clear, for a network that nobody "
             "else can reach, and still authenticates peers"},
    {.name = "recorder_events",
     .spec =
         IntegerSpec{
             .fallback = 4096, .min = 0, .max = Recorder::kMaxEventsPerThread, .unit = "events"},
     .help = "Number of recent events that the recorder keeps per thread, 32 bytes each; 0 turns "
             "it off"},
    {.name = "recovery",
     .spec = ChoiceSpec{.fallback = "manual", .choices = kRecoveries},
     .scope = SettingScope::cluster,
     .help = "What a node does when a member of its world fails: manual lets calls fail and leaves "
             "the rest to the program, automatic also shrinks the world, abort ends the program "
             "on all ranks"},
    {.name = "reproducibility",
     .spec = ChoiceSpec{.fallback = "ranks", .choices = kReproducibilities},
     .scope = SettingScope::cluster,
     .help =
         "ranks gives every rank the same bits; runs also gives the same bits in every run with "
         "as many ranks, whichever algorithm and segment size are chosen"},
    {.name = "require_cluster",
     .spec = BooleanSpec{.fallback = false},
     .help = "If true, join() fails in a process that has neither a launcher nor a join string; if "
             "false, such a process forms a world of one"},
    {.name = "spin",
     .spec = DurationSpec{.fallback = std::chrono::microseconds(100),
                          .min = Duration(0),
                          .max = std::chrono::hours(1)},
     .help = "How long a waiting thread polls after the last arrival before it sleeps, with "
             "progress=auto and a processor for each rank"},
    {.name = "topology",
     .spec = TextSpec{.fallback = "full"},
     .scope = SettingScope::cluster,
     .help = "Which members connect directly: full connects all pairs; k_regular:K, with an even K "
             "from 2 to 32, at most K pairs per member; hypercube about log2 of the members. The "
             "others communicate through relays"},
    {.name = "udp_buffer",
     .spec = SizeSpec{.fallback = 8U << 20U, .min = 64U << 10U, .max = 1U << 30U},
     .help = "Size of the receive buffer requested from the kernel for UDP packets; the kernel "
             "grants at most net.core.rmem_max"},
});
static_assert(valid_table(kSettings));

// Settings of a Config for kSettings, converted to the types that their users need.

LogOptions log_options(const Config& config) noexcept;

PoolProfile pool_profile(const Config& config);

RecorderOptions recorder_options(const Config& config) noexcept;

}  // namespace nexar
