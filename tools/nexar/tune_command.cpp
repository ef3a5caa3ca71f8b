// nexar tune: measures what the fabric costs, and writes it as settings by which algorithms are
// chosen.

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
    "Measures between ranks 0 and 1 how long messages take, and what a rank folds and\n"
    "copies; prints the settings that say so, as a settings file: fabric_* when the two\n"
    "are on different machines, host_* when they share one. All members need the same\n"
    "values: put them where each finds them (docs/tuning.md), or give them to the seed.\n"
    "Measure with nothing else on the machines, and as the program will run: on the\n"
    "same machines, with the same protection.\n"
    "\n"
    "With -n, the ranks are processes on this machine; without, it is a rank itself,\n"
    "of the world that a launcher made.\n"
    "\n"
    "Examples:\n"
    "  nexar tune -n 2 -o host.toml                      # within this machine\n"
    "  nexar run --host a,b -- nexar tune -o fabric.toml # between two\n"
    "  NEXAR_CONFIG=fabric.toml nexar config             # what it changed";

struct TuneQuestion {
    bench::Ranks ranks{};
    std::string path{};
    double seconds = 0.3;
};

/// Of one kind of message and size, the median of several measurements: one alone may meet a
/// moment when the machine was busy.
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

/// Seconds per byte of what is done to `bytes` of memory again and again.
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

/// `links`: whose rates they are, "fabric" or "host".
std::string as_settings(std::string_view links, const Rates& rates, const LinkTimes& times,
                        std::string_view protection) {
    // What a setting takes: whole numbers, at least those that it allows.
    const auto per_second = [](double byte_seconds) {
        return static_cast<std::uint64_t>(std::clamp(std::round(1 / byte_seconds), 1e3, 1e15));
    };
    // Not 0, which has a meaning of its own for host_*.
    const auto at_least_one = [](double number) { return std::max(std::llround(number), 1LL); };
    const auto nanoseconds = [&](double seconds) { return at_least_one(seconds * 1e9); };
    const auto lasts = [](double wanted, double was) {
        return fmt::format("{} (measured: {})", as_time(wanted), as_time(was));
    };
    std::string text = fmt::format(
        "# What messages and memory cost, measured by nexar tune from {}, protection {}.\n"
        "# All members of a cluster need the same values. By them:\n",
        host_name(), protection);
    text += fmt::format("#   a message of 8 bytes takes {}\n", lasts(rates.hop(8), times.small));
    text += fmt::format("#   a message of 1 MiB takes {}\n",
                        lasts(rates.hop(LinkTimes::kMedium), times.medium));
    text += fmt::format("#   1 MiB each way at the same time take {}\n",
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

/// A file that was not there. Throws nexar::Error.
class NewFile {
public:
    explicit NewFile(std::string path)
        : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wx")) {
        if (file_ != nullptr) return;
        throw Error(Errc::bad_config,
                    fmt::format("{} cannot be written: {}; name a file that is not there yet",
                                path_, std::strerror(errno)));
    }

    void write(const std::string& text) {
        const bool whole = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
        if (std::fclose(file_.release()) != 0 || !whole) {
            throw Error(Errc::bad_config, path_ + " cannot be written whole");
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
    std::unique_ptr<NewFile> file;  // before anything takes time
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
        return not_allowed("bound of time", std::to_string(question.seconds), "above 0");
    }
    const bench::Job job{
        .fits = [](std::uint32_t world) -> Result<void> {
            if (world >= 2) return {};
            return Error(Errc::invalid_argument, "tune measures between two ranks: -n 2");
        },
        .take_part = [&](const Communicator& world,
                         const Config& config) { return tune(question, world, config); }};
    return bench::run_job(job, question.ranks, command, invocation);
}

}  // namespace

void add_tune_command(CLI::App& app, Invocation& invocation) {
    const auto question = std::make_shared<TuneQuestion>();
    CLI::App* const command = app.add_subcommand(
        "tune", "Measures what messages cost here, as settings that choose algorithms");
    set_help(*command, "[-n RANKS] [OPTIONS]", kTuneHelp);
    bench::add_rank_options(*command, question->ranks);
    command->add_option("-o,--output", question->path, "Writes to this new file, not to the screen")
        ->type_name("FILE");
    command->add_option("--seconds", question->seconds, "For each of eight measurements")
        ->type_name("SECONDS")
        ->capture_default_str();
    command->callback([question, command, &invocation] {
        bench::answer(*command, invocation,
                      [&] { return run_tune(*question, *command, invocation); });
    });
}

}  // namespace nexar
