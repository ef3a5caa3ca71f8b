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
inline constexpr std::array<std::string_view, 3> kMeshes = {"auto", "eager", "lazy"};
inline constexpr std::array<std::string_view, 2> kAbortActions = {"exit", "error"};
inline constexpr std::array<std::string_view, 2> kPoolProfiles = {"training", "inference"};
inline constexpr std::array<std::string_view, 2> kProtections = {"full", "none"};
inline constexpr std::array<std::string_view, 2> kReproducibilities = {"ranks", "runs"};

/// Every setting of nexar. A setting enters together with the code that reads it, and with its row
/// in docs/tuning.md (`nexar config --markdown`).
inline constexpr std::array kSettings = std::to_array<Setting>({
    {.name = "certificate_lifetime",
     .spec = DurationSpec{.fallback = std::chrono::hours(24),
                          .min = std::chrono::seconds(2),
                          .max = std::chrono::hours(90 * 24)},
     .help = "How long the certificates are valid that a seed issues; nodes renew them at half of "
             "it"},
    {.name = "collective_algorithm",
     .spec = TextSpec{.fallback = ""},
     .scope = SettingScope::cluster,
     .help = "Algorithms that are taken whatever they cost: all_reduce=tree:64KiB,all_reduce=ring "
             "takes tree up to 64 KiB, then ring; empty takes the fastest by fabric_* and host_*"},
    {.name = "collective_eager_limit",
     .spec = SizeSpec{.fallback = 1U << 16U, .max = 1U << 16U},
     .scope = SettingScope::cluster,
     .help = "Messages of collectives up to this size share a stream, larger ones have one each"},
    {.name = "collective_segment",
     .spec = SizeSpec{.fallback = 0, .max = 1U << 30U},
     .scope = SettingScope::cluster,
     .help = "Pieces in which collectives pass data on; 0 takes the best size for each call"},
    {.name = "collective_timeout",
     .spec = DurationSpec{.fallback = std::chrono::minutes(30),
                          .min = std::chrono::milliseconds(1),
                          .max = std::chrono::hours(24 * 365)},
     .help = "How long a collective may take until all its ranks give it up"},
    {.name = "fabric_bandwidth",
     .spec = SizeSpec{.fallback = 1'300'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank sends or receives; decides which algorithm is taken"},
    {.name = "fabric_both_bandwidth",
     .spec = SizeSpec{.fallback = 700'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank sends while it receives as many; as fabric_bandwidth "
             "where the network is slower than the processors"},
    {.name = "fabric_copy",
     .spec = SizeSpec{.fallback = 12'000'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank copies"},
    {.name = "fabric_fill",
     .spec = SizeSpec{.fallback = 1U << 17U, .max = 1U << 30U},
     .scope = SettingScope::cluster,
     .help = "How much of a message its sender has worked on before its receiver begins with it"},
    {.name = "fabric_latency",
     .spec = DurationSpec{.fallback = std::chrono::microseconds(10),
                          .min = Duration(1),
                          .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "From the moment that a small message leaves until it is there"},
    {.name = "fabric_per_message",
     .spec = DurationSpec{.fallback = std::chrono::microseconds(3),
                          .min = Duration(0),
                          .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "What one more message costs a rank that is busy with others"},
    {.name = "fabric_ranks_per_core",
     .spec = RealSpec{.fallback = 1, .min = 1, .max = 1e6},
     .scope = SettingScope::cluster,
     .help =
         "Ranks for each processor of a machine; where they share processors, algorithms are "
         "taken that do less in all. nexar run and nexar bench set it for ranks of one machine"},
    {.name = "fabric_reduce",
     .spec = SizeSpec{.fallback = 8'000'000'000, .min = 1000, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "Bytes per second that a rank folds"},
    {.name = "formation_timeout",
     .spec = DurationSpec{.fallback = std::chrono::seconds(60),
                          .min = std::chrono::milliseconds(100),
                          .max = std::chrono::hours(24)},
     .help = "How long a join waits until all members are connected"},
    {.name = "host_bandwidth",
     .spec = SizeSpec{.fallback = 0, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "As fabric_bandwidth, where all ranks are on one machine; 0: the same"},
    {.name = "host_both_bandwidth",
     .spec = SizeSpec{.fallback = 0, .max = 1'000'000'000'000'000},
     .scope = SettingScope::cluster,
     .help = "As fabric_both_bandwidth, where all ranks are on one machine; 0: the same"},
    {.name = "host_fill",
     .spec = SizeSpec{.fallback = 0, .max = 1U << 30U},
     .scope = SettingScope::cluster,
     .help = "As fabric_fill, where all ranks are on one machine; 0: the same"},
    {.name = "host_latency",
     .spec =
         DurationSpec{.fallback = Duration(0), .min = Duration(0), .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "As fabric_latency, where all ranks are on one machine; 0: the same"},
    {.name = "host_per_message",
     .spec =
         DurationSpec{.fallback = Duration(0), .min = Duration(0), .max = std::chrono::minutes(1)},
     .scope = SettingScope::cluster,
     .help = "As fabric_per_message, where all ranks are on one machine; 0: the same"},
    {.name = "link_idle_timeout",
     .spec = DurationSpec{.fallback = std::chrono::seconds(30),
                          .min = std::chrono::seconds(1),
                          .max = std::chrono::hours(1)},
     .help = "A link on which nothing was heard for so long has failed"},
    {.name = "listen",
     .spec = TextSpec{.fallback = ""},
     .help = "Address and UDP port of this node, 10.0.0.7:7401; empty takes all addresses and a "
             "free port"},
    {.name = "log_level",
     .spec = ChoiceSpec{.fallback = "warning", .choices = kLogLevels},
     .help = "Lines of this level and above are written to the log"},
    {.name = "log_rate_limit",
     .spec = IntegerSpec{.fallback = 10, .min = 0, .max = 100'000, .unit = "lines/s"},
     .help = "Lines per second that each place in the source may log; 0 sets no limit"},
    {.name = "mesh",
     .spec = ChoiceSpec{.fallback = "auto", .choices = kMeshes},
     .scope = SettingScope::cluster,
     .help = "eager connects all members when the cluster forms, lazy on first use; auto is eager "
             "up to 64 members"},
    {.name = "on_abort",
     .spec = ChoiceSpec{.fallback = "exit", .choices = kAbortActions},
     .help = "What Communicator::abort() does in the process that calls it when all ranks know: "
             "exit ends the process with the code, error returns"},
    {.name = "pool_profile",
     .spec = ChoiceSpec{.fallback = "training", .choices = kPoolProfiles},
     .help = "How many idle buffers of each size the buffer pool keeps"},
    {.name = "protection",
     .spec = ChoiceSpec{.fallback = "full", .choices = kProtections},
     .scope = SettingScope::cluster,
     .help = "none sends data in the clear, for a fabric that nobody else reaches; peers are still "
             "authenticated"},
    {.name = "recorder_events",
     .spec =
         IntegerSpec{
             .fallback = 4096, .min = 0, .max = Recorder::kMaxEventsPerThread, .unit = "events"},
     .help = "Last events that the recorder keeps per thread, 32 bytes each; 0 turns it off"},
    {.name = "reproducibility",
     .spec = ChoiceSpec{.fallback = "ranks", .choices = kReproducibilities},
     .scope = SettingScope::cluster,
     .help = "ranks gives every rank the same bits; runs also gives the same bits in every run "
             "with as many ranks, whichever algorithm and segment are chosen"},
    {.name = "require_cluster",
     .spec = BooleanSpec{.fallback = false},
     .help = "true makes join() fail in a process that nobody launched, which otherwise is a world "
             "of one"},
    {.name = "udp_buffer",
     .spec = SizeSpec{.fallback = 8U << 20U, .min = 64U << 10U, .max = 1U << 30U},
     .help = "What the kernel is asked to hold of arrived packets; it gives at most "
             "net.core.rmem_max"},
});
static_assert(valid_table(kSettings));

// The values of a Config of kSettings in the types that their readers take.

LogOptions log_options(const Config& config) noexcept;

PoolProfile pool_profile(const Config& config);

RecorderOptions recorder_options(const Config& config) noexcept;

}  // namespace nexar
