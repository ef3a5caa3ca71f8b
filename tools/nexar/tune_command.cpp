// nexar tune: measures the cost of messages and memory, and writes it as the settings by which
// collectives choose their algorithm.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "bench/launch.hpp"
#include "collective.hpp"
#include "command.hpp"
#include "help.hpp"
#include "schedule/fit.hpp"
#include "tune_measure.hpp"

namespace nexar {

namespace {

using schedule::LinkTimes;
using schedule::Rates;

constexpr const char* kTuneHelp =
    "Measures how long messages between two ranks take and how fast a rank reduces and\n"
    "copies memory, and prints the result as a settings file: host_* for ranks on one\n"
    "machine, fabric_* for ranks on different ones, both if the world has both, and then\n"
    "fabric_shared_bandwidth if the ranks of a machine slow each other down. If the ranks of\n"
    "a machine share memory, it also measures collectives there: memory_*. All members\n"
    "need the same values: put the file where every member finds it (docs/tuning.md), or\n"
    "give the values to the seed. Measure on idle machines, and under the conditions in\n"
    "which the program will run: the same machines, ranks, links and protection.\n"
    "\n"
    "With -n, nexar tune starts that many processes on this machine. Without -n, it is\n"
    "one rank of a world that a launcher started.\n"
    "\n"
    "Examples:\n"
    "  nexar tune -n 2 -o host.toml                      # within this machine\n"
    "  nexar tune -n 8 --link shm -o host.toml           # with shared memory\n"
    "  nexar run --host a,b -- nexar tune -o fabric.toml # between two machines\n"
    "  NEXAR_CONFIG=fabric.toml nexar config             # shows the new values";

struct TuneQuestion {
    bench::Ranks ranks{};
    std::string path{};
    double seconds = 0.3;
};

std::string host_name() {
    std::array<char, 256> text{};
    if (gethostname(text.data(), text.size() - 1) != 0) return "an unknown host";
    return text.data();
}

// Settings are whole numbers within the range that each allows.
std::uint64_t per_second(double byte_seconds) {
    return static_cast<std::uint64_t>(std::clamp(std::round(1 / byte_seconds), 1e3, 1e15));
}

/// Never 0, which has a special meaning for host_*.
long long at_least_one(double number) {
    return std::max(std::llround(number), 1LL);
}

long long nanoseconds(double seconds) {
    return at_least_one(seconds * 1e9);
}

std::string predicted(std::string_view what, double wanted, double was) {
    return fmt::format("#   {} takes {} (measured: {})\n", what, as_time(wanted), as_time(was));
}

/// `links` is the kind of link that the times describe: "fabric" or "host".
std::string link_settings(std::string_view links, const LinkTimes& times) {
    const Rates rates = schedule::fitted(times);
    std::string text = fmt::format("# According to these values, between ranks {}\n",
                                   links == "host" ? "on one machine" : "on different machines");
    text += predicted("a message of 8 bytes", rates.hop(8), times.small);
    text += predicted("a message of 1 MiB", rates.hop(LinkTimes::kMedium), times.medium);
    text += predicted("1 MiB in each direction at the same time", rates.swap(LinkTimes::kMedium),
                      times.both_medium);
    text += fmt::format("{}_latency = \"{}ns\"\n", links, nanoseconds(rates.latency));
    text += fmt::format("{}_per_message = \"{}ns\"\n", links, nanoseconds(rates.per_message));
    text += fmt::format("{}_bandwidth = {}\n", links, per_second(rates.per_byte));
    text += fmt::format("{}_both_bandwidth = {}\n", links, per_second(rates.both_byte));
    text += fmt::format("{}_fill = {}\n", links, at_least_one(rates.fill_bytes));
    return text;
}

std::string memory_settings(const schedule::MemoryTimes& times) {
    const schedule::Memory memory = schedule::fitted_memory(times);
    std::string text =
        fmt::format("# In memory that the {} ranks of a machine share\n", times.ranks);
    text +=
        predicted("a barrier", memory.latency + (times.ranks - 1) * memory.per_peer, times.barrier);
    text +=
        predicted("a broadcast of 1 MiB",
                  static_cast<double>(LinkTimes::kMedium) * (memory.put_byte + memory.read_byte),
                  times.medium);
    text += fmt::format("memory_latency = \"{}ns\"\n", nanoseconds(memory.latency));
    text += fmt::format("memory_per_peer = \"{}ns\"\n", std::llround(memory.per_peer * 1e9));
    text += fmt::format("memory_put = {}\n", per_second(memory.put_byte));
    text += fmt::format("memory_read = {}\n", per_second(memory.read_byte));
    return text;
}

std::string as_settings(const Tuned& tuned, std::string_view protection) {
    std::string text = fmt::format(
        "# Costs of messages and memory, measured by nexar tune on {}, protection {}.\n"
        "# All members of a cluster need the same values.\n",
        host_name(), protection);
    if (tuned.fabric) text += link_settings("fabric", *tuned.fabric);
    if (tuned.shared_bandwidth > 0) {
        text +=
            "# Together, the ranks of a machine reach less than the sum of what each reaches "
            "alone.\n";
        text +=
            fmt::format("fabric_shared_bandwidth = {}\n", per_second(1 / tuned.shared_bandwidth));
    }
    if (tuned.host) text += link_settings("host", *tuned.host);
    if (tuned.memory) text += memory_settings(*tuned.memory);
    const Rates rates = schedule::fitted(tuned.any());
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

int tune(const TuneQuestion& question, const Node& node, const Config& config) {
    const bool writes = node.world().rank() == 0;
    std::unique_ptr<NewFile> file;  // opened first, before the measurements take time
    std::exception_ptr failure;
    try {
        if (writes && !question.path.empty()) file = std::make_unique<NewFile>(question.path);
    } catch (const Error&) {
        failure = std::current_exception();
    }
    // Only rank 0 fails, so that its reason is the only error.
    const bool opened = node.world().broadcast(failure == nullptr, 0).wait();
    if (failure) std::rethrow_exception(failure);
    if (!opened) return kExitOk;
    const Tuned tuned = measure_world(node, question.seconds);
    if (!writes) return kExitOk;
    const auto text = as_settings(tuned, config.choice("protection"));
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
                         const Config& config) { return tune(question, node, config); }};
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
        ->add_option("--link", question->ranks.link,
                     "Link between the ranks: auto, quic, shm; by default the value of the setting")
        ->type_name("LINK");
    command
        ->add_option("-o,--output", question->path,
                     "Writes to this new file instead of standard output")
        ->type_name("FILE");
    command->add_option("--seconds", question->seconds, "Time for each measurement")
        ->type_name("SECONDS")
        ->capture_default_str();
    command->callback([question, command, &invocation] {
        bench::answer(*command, invocation,
                      [&] { return run_tune(*question, *command, invocation); });
    });
}

}  // namespace nexar
