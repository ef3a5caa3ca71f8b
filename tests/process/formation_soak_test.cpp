// Many formations on a busy machine: ranks that are paused at random moments, and seeds that are
// killed and restarted. NEXAR_SOAK_RUNS sets the number of runs.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "process/run_many_times.hpp"
#include "support/seed.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

using std::chrono::milliseconds;

int soak_runs(int fallback) {
    const char* const given = std::getenv("NEXAR_SOAK_RUNS");
    return given == nullptr ? fallback : std::atoi(given);
}

/// Processes that keep every processor busy.
class Hogs {
public:
    Hogs() {
        for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
            const pid_t pid = ::fork();
            if (pid == 0) {
                for (std::atomic<unsigned> spin = 0;;) spin.fetch_add(1);
            }
            hogs_.push_back(pid);
        }
    }
    Hogs(const Hogs&) = delete;
    Hogs& operator=(const Hogs&) = delete;
    ~Hogs() {
        for (const pid_t pid : hogs_) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }

private:
    std::vector<pid_t> hogs_;
};

/// One line of output of forming_rank.
struct Formed {
    int rank = -1;
    int world = 0;
    long long took = 0;
    long long sum = 0;
};

std::vector<Formed> formed_in(const std::string& output) {
    std::vector<Formed> all;
    for (std::size_t at = output.find("rank "); at != std::string::npos;
         at = output.find("rank ", at + 1)) {
        Formed one;
        if (std::sscanf(output.c_str() + at, "rank %d of %d formed in %lld ms, sum %lld", &one.rank,
                        &one.world, &one.took, &one.sum) == 4) {
            all.push_back(one);
        }
    }
    return all;
}

/// Collects the failures of several threads, to be reported to GoogleTest by one thread.
class Findings {
public:
    void add(const std::string& what) {
        const std::scoped_lock lock(mutex_);
        failures_.push_back(what);
    }
    void took(double seconds) {
        const std::scoped_lock lock(mutex_);
        times_.push_back(seconds);
    }
    bool any() {
        const std::scoped_lock lock(mutex_);
        return !failures_.empty();
    }
    double percentile(double part) {
        std::ranges::sort(times_);
        if (times_.empty()) return 0;
        return times_[static_cast<std::size_t>(part * static_cast<double>(times_.size() - 1))];
    }
    void report(const std::string& title) {
        fmt::print("{}: {} runs, median {:.2f} s, 99 % {:.2f} s, longest {:.2f} s, {} failures\n",
                   title, times_.size(), percentile(0.5), percentile(0.99), percentile(1.0),
                   failures_.size());
        for (const std::string& failure : failures_) ADD_FAILURE() << failure;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> failures_;
    std::vector<double> times_;
};

/// Checks that each rank formed once and has the right sum. Returns what is wrong, or an empty
/// text.
std::string what_is_wrong(const std::vector<Formed>& all, int world) {
    std::set<int> ranks;
    long long sum = 0;
    for (int rank = 0; rank < world; ++rank) sum += 1000 + 7 * rank;
    for (const Formed& one : all) {
        ranks.insert(one.rank);
        if (one.world != world || one.sum != sum) {
            return fmt::format("rank {} of {} has the sum {}, not {}", one.rank, one.world, one.sum,
                               sum);
        }
    }
    if (ranks.size() == static_cast<std::size_t>(world) && all.size() == ranks.size()) return {};
    return fmt::format("{} ranks formed, {} of them distinct, in a world of {}", all.size(),
                       ranks.size(), world);
}

double longest(const std::vector<Formed>& all) {
    long long most = 0;
    for (const Formed& one : all) most = std::max(most, one.took);
    return static_cast<double>(most) / 1e3;
}

class FormationSoak : public RunFixture {
protected:
    std::vector<std::string> environment_of(const std::string& run) const {
        auto all = environment();
        all.push_back("RUN_MARK=" + mark() + "." + run);
        return all;
    }
    std::string run_mark(const std::string& run) const { return "RUN_MARK=" + mark() + "." + run; }

    /// Not used to wait for a condition: the test chooses random moments.
    static void sleep(milliseconds span) { std::this_thread::sleep_for(span); }

    std::vector<pid_t> ranks_of(const std::string& run) const {
        std::vector<pid_t> pids;
        for (const pid_t pid : processes_with(run_mark(run))) {
            if (name_of_process(pid) == "forming_rank") pids.push_back(pid);
        }
        return pids;
    }

    struct Pause {
        milliseconds after{};
        milliseconds length{};
        std::uint64_t who = 0;
    };

    /// Runs `nexar run` and stops one rank for a while.
    void run_with_a_pause(int number, int world, const Pause& pause, Findings& findings) const {
        const std::string run = std::to_string(number);
        RunningProgram program(NEXAR_COMMAND,
                               {"run", "-n", std::to_string(world), "--", NEXAR_FORMING_RANK},
                               environment_of(run));
        sleep(pause.after);
        if (const auto ranks = ranks_of(run); !ranks.empty()) {
            const pid_t chosen = ranks[pause.who % ranks.size()];
            ::kill(chosen, SIGSTOP);
            sleep(pause.length);
            ::kill(chosen, SIGCONT);
        }
        const int code = program.wait();
        const auto formed = formed_in(program.output());
        const std::string wrong = what_is_wrong(formed, world);
        const double took = longest(formed);
        const double most = static_cast<double>(pause.length.count()) / 1e3 + 5.0;
        findings.took(took);
        if (code == 0 && wrong.empty() && took <= most) return;
        findings.add(
            fmt::format("run {} of {} ranks, one stopped after {} ms for {} ms: exit code "
                        "{}, formed in {:.2f} s, {}\n{}{}",
                        number, world, pause.after.count(), pause.length.count(), code, took, wrong,
                        program.output(), program.errors()));
    }

    /// Starts a seed on its own port and six ranks with one token, then kills and restarts the
    /// seed.
    void form_while_the_seed_restarts(int number, std::uint64_t random, Findings& findings) const;

    static constexpr int kAtATime = 4;

    template <class Run>
    void run_all(int runs, Findings& findings, Run one) const {
        std::atomic<int> next = 0;
        std::vector<std::jthread> threads;
        for (int i = 0; i < kAtATime; ++i) {
            threads.emplace_back([&] {
                for (int run = next++; run < runs; run = next++) one(run, findings);
            });
        }
    }
};

TEST_F(FormationSoak, paused_ranks_form_and_none_is_left_behind) {
    const std::uint64_t seed = test_seed(17);
    const int runs = soak_runs(40);
    const Hogs hogs;
    Findings findings;
    run_all(runs, findings, [&](int run, Findings& found) {
        std::mt19937_64 random(seed + static_cast<std::uint64_t>(run));
        const Pause pause{.after = milliseconds(random() % 600),
                          .length = milliseconds(500 + random() % 3501),
                          .who = random()};
        run_with_a_pause(run, run % 2 == 0 ? 4 : 8, pause, found);
    });
    findings.report("stopped ranks");
}

void FormationSoak::form_while_the_seed_restarts(int number, std::uint64_t random_seed,
                                                 Findings& findings) const {
    constexpr int kWorld = 6;
    std::mt19937_64 random(random_seed);
    const TempDirectory directory;
    const std::string state = directory.path() + "/state";
    const auto environment = environment_of(std::to_string(number));
    const std::string address =
        fmt::format("127.0.0.1:{}", 10'000 + (::getpid() + number) % 20'000);
    const auto start_seed = [&] {
        return std::make_unique<RunningProgram>(
            NEXAR_COMMAND,
            std::vector<std::string>{"seed", "--listen", address, "--world", std::to_string(kWorld),
                                     "--state", state},
            environment);
    };
    auto seed = start_seed();
    if (!seed->writes("create a join string with:")) return findings.add(seed->errors());
    const Outcome token = run_program(
        NEXAR_COMMAND, {"token", "create", "--uses", std::to_string(kWorld), "--state", state},
        environment);
    std::string join = token.output.substr(0, token.output.find('\n'));
    auto of_rank = environment;
    of_rank.push_back("NEXAR_JOIN=" + join);
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    for (int i = 0; i < kWorld; ++i) {
        ranks.push_back(std::make_unique<RunningProgram>(NEXAR_FORMING_RANK,
                                                         std::vector<std::string>{}, of_rank));
    }
    sleep(milliseconds(random() % 300));
    seed->send(SIGKILL);
    seed->wait();
    seed = start_seed();
    std::string all;
    std::string errors;
    bool failed = false;
    for (auto& rank : ranks) {
        failed = rank->wait() != 0 || failed;
        all += rank->output();
        errors += rank->errors();
    }
    const auto formed = formed_in(all);
    const std::string wrong = what_is_wrong(formed, kWorld);
    findings.took(longest(formed));
    if (failed || !wrong.empty()) {
        findings.add(fmt::format("run {}: {}\n{}{}{}", number, wrong, all, errors, seed->errors()));
    }
    seed->send(SIGKILL);
    seed->wait();
}

TEST_F(FormationSoak, ranks_form_while_their_seed_is_killed_and_restarted) {
    const std::uint64_t seed = test_seed(18);
    const int runs = soak_runs(20);
    Findings findings;
    run_all(runs, findings, [&](int run, Findings& found) {
        form_while_the_seed_restarts(run, seed + static_cast<std::uint64_t>(run), found);
    });
    findings.report("restarted seeds");
    EXPECT_LE(findings.percentile(0.99), 8.0);
}

}  // namespace
}  // namespace nexar
