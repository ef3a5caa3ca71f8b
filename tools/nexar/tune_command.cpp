// nexar tune: measures the cost of messages and memory, and writes it as the settings by which
// collectives choose their algorithm.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/try.hpp"
#include "bench/launch.hpp"
#include "bench/measurement.hpp"
#include "bench/memory.hpp"
#include "bench/plan.hpp"
#include "collective.hpp"
#include "command.hpp"
#include "compute/reduce.hpp"
#include "help.hpp"
#include "schedule/fit.hpp"

namespace nexar {

namespace {

using bench::Subject;
using schedule::LinkTimes;
using schedule::Rates;

constexpr const char* kTuneHelp =
    "Measures how long messages between ranks 0 and 1 take and how fast a rank reduces\n"
    "and copies memory, and prints the result as a settings file: fabric_* if the two\n"
    "ranks are on different machines, host_* if they share one. All members need the\n"
    "same values: put the file where every member finds it (docs/tuning.md), or give the\n"
    "values to the seed. Measure on idle machines, and under the conditions in which\n"
    "the program will run: the same machines and the same protection.\n"
    "\n"
    "With -n, nexar tune starts that many processes on this machine. Without -n, it is\n"
    "one rank of a world that a launcher started.\n"
    "\n"
    "Examples:\n"
    "  nexar tune -n 2 -o host.toml                      # within this machine\n"
    "  nexar run --host a,b -- nexar tune -o fabric.toml # between two machines\n"
    "  NEXAR_CONFIG=fabric.toml nexar config             # shows the new values";

struct TuneQuestion {
    bench::Ranks ranks{};
    std::string path{};
    double seconds = 0.3;
};

/// The median of several measurements of one kind and size of message: a single measurement may hit
/// a moment when the machine is busy.
double message_seconds(Subject::Kind kind, std::uint64_t bytes, const Communicator& world,
                       double seconds) {
    constexpr std::size_t kTimes = 5;
    bench::Plan plan;
    plan.subject.kind = kind;
    plan.warmup = 5;
    plan.seconds = seconds / kTimes;
    plan.check = false;
    plan.dtype = DType::u8;
    std::array<double, kTimes> medians{};
    for (double& median : medians) median = bench::measure(plan, world, bytes).p50;
    std::ranges::sort(medians);
    return medians[kTimes / 2];
}

/// Repeats `once`, which processes `bytes` of memory, and returns its best time per byte.
double byte_seconds(std::uint64_t bytes, double seconds, const std::function<void()>& once) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    auto best = Clock::duration::max();
    do {
        const auto begin = Clock::now();
        once();
        best = std::min(best, Clock::now() - begin);
    } while (Clock::now() < until);
    return std::chrono::duration<double>(best).count() / static_cast<double>(bytes);
}

LinkTimes measured(const Communicator& world, double seconds) {
    constexpr std::uint64_t kSmall = 8;
    const auto message = [&](Subject::Kind kind, std::uint64_t bytes) {
        return message_seconds(kind, bytes, world, seconds);
    };
    LinkTimes times;
    times.small = message(Subject::Kind::latency, kSmall);
    times.one_of_many = message(Subject::Kind::bandwidth, kSmall);
    times.medium = message(Subject::Kind::latency, LinkTimes::kMedium);
    times.large = message(Subject::Kind::latency, LinkTimes::kLarge);
    times.both_medium = message(Subject::Kind::exchange, LinkTimes::kMedium);
    times.both_large = message(Subject::Kind::exchange, LinkTimes::kLarge);

    const std::uint64_t count = LinkTimes::kMedium / sizeof(float);
    const bench::Memory one(count, DType::f32);
    const bench::Memory other(count, DType::f32);
    auto* const to = static_cast<std::byte*>(one.buffer().data);
    auto* const from = static_cast<std::byte*>(other.buffer().data);
    std::memset(to, 0, LinkTimes::kMedium);
    std::memset(from, 0, LinkTimes::kMedium);
    const auto reducer = compute::reducer_for(DType::f32, ReduceOp::sum).value();
    times.reduce_byte =
        byte_seconds(LinkTimes::kMedium, seconds, [&] { reducer.fold(to, to, from, count); });
    times.copy_byte = byte_seconds(LinkTimes::kMedium, seconds,
                                   [&] { std::memcpy(to, from, LinkTimes::kMedium); });
    return times;
}

std::string host_name() {
    std::array<char, 256> text{};
    if (gethostname(text.data(), text.size() - 1) != 0) return "an unknown host";
    return text.data();
}

/// `links` is the kind of link that the rates describe: "fabric" or "host".
std::string as_settings(std::string_view links, const Rates& rates, const LinkTimes& times,
                        std::string_view protection) {
    // Settings are whole numbers within the range that each allows.
    const auto per_second = [](double byte_seconds) {
        return static_cast<std::uint64_t>(std::clamp(std::round(1 / byte_seconds), 1e3, 1e15));
    };
    // Never 0, which has a special meaning for host_*.
    const auto at_least_one = [](double number) { return std::max(std::llround(number), 1LL); };
    const auto nanoseconds = [&](double seconds) { return at_least_one(seconds * 1e9); };
    const auto lasts = [](double wanted, double was) {
        return fmt::format("{} (measured: {})", as_time(wanted), as_time(was));
    };
    std::string text = fmt::format(
        "# Costs of messages and memory, measured by nexar tune on {}, protection {}.\n"
        "# All members of a cluster need the same values. According to these values,\n",
        host_name(), protection);
    text += fmt::format("#   a message of 8 bytes takes {}\n", lasts(rates.hop(8), times.small));
    text += fmt::format("#   a message of 1 MiB takes {}\n",
                        lasts(rates.hop(LinkTimes::kMedium), times.medium));
    text += fmt::format("#   1 MiB in each direction at the same time takes {}\n",
                        lasts(rates.swap(LinkTimes::kMedium), times.both_medium));
    text += fmt::format("{}_latency = \"{}ns\"\n", links, nanoseconds(rates.latency));
    text += fmt::format("{}_per_message = \"{}ns\"\n", links, nanoseconds(rates.per_message));
    text += fmt::format("{}_bandwidth = {}\n", links, per_second(rates.per_byte));
    text += fmt::format("{}_both_bandwidth = {}\n", links, per_second(rates.both_byte));
    text += fmt::format("{}_fill = {}\n", links, at_least_one(rates.fill_bytes));
    text += fmt::format("fabric_reduce = {}\n", per_second(rates.reduce_byte));
    text += fmt::format("fabric_copy = {}\n", per_second(rates.copy_byte));
    return text;
}

/// A file that must not exist yet. Throws nexar::Error.
class NewFile {
public:
    explicit NewFile(std::string path)
        : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wx")) {
        if (file_ != nullptr) return;
        throw Error(Errc::bad_config,
                    fmt::format("cannot write {}: {}; -o needs a new file in an existing directory",
                                path_, std::strerror(errno)));
    }

    void write(const std::string& text) {
        const bool whole = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
        if (std::fclose(file_.release()) != 0 || !whole) {
            throw Error(Errc::bad_config, "cannot write all of " + path_);
        }
    }

private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
    };

    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
};

int tune(const TuneQuestion& question, const Communicator& world, const Config& config) {
    const bool writes = world.rank() == 0;
    std::unique_ptr<NewFile> file;  // opened first, before the measurements take time
    if (writes && !question.path.empty()) file = std::make_unique<NewFile>(question.path);
    const LinkTimes times = measured(world, question.seconds);
    if (!writes) return kExitOk;
    const std::string_view links = world.host(0) == world.host(1) ? "host" : "fabric";
    const auto text =
        as_settings(links, schedule::fitted(times), times, config.choice("protection"));
    if (file) {
        file->write(text);
    } else {
        fmt::print("{}", text);
    }
    return kExitOk;
}

Result<int> run_tune(const TuneQuestion& question, const CLI::App& command,
                     const Invocation& invocation) {
    if (!(question.seconds > 0)) {
        return not_allowed("time limit", std::to_string(question.seconds), "above 0");
    }
    const bench::Job job{
        .fits = [](std::uint32_t world) -> Result<void> {
            if (world >= 2) return {};
            return Error(Errc::invalid_argument,
                         "messages can only be measured between two ranks; give -n 2 or more");
        },
        .take_part = [&](const Node& node,
                         const Config& config) { return tune(question, node.world(), config); }};
    return bench::run_job(job, question.ranks, command, invocation);
}

}  // namespace

void add_tune_command(CLI::App& app, Invocation& invocation) {
    const auto question = std::make_shared<TuneQuestion>();
    CLI::App* const command =
        app.add_subcommand("tune", "Measures message costs and prints them as settings");
    set_help(*command, "[-n RANKS] [OPTIONS]", kTuneHelp);
    bench::add_rank_options(*command, question->ranks);
    command
        ->add_option("-o,--output", question->path,
                     "Writes to this new file instead of standard output")
        ->type_name("FILE");
    command->add_option("--seconds", question->seconds, "Time for each of eight measurements")
        ->type_name("SECONDS")
        ->capture_default_str();
    command->callback([question, command, &invocation] {
        bench::answer(*command, invocation,
                      [&] { return run_tune(*question, *command, invocation); });
    });
}

}  // namespace nexar
