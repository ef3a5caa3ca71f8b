// The body of `nexar seed`.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <nexar/error.hpp>
#include <nexar/seed.hpp>
#include <string>
#include <string_view>

#include "cluster.hpp"
#include "command.hpp"
#include "security/state_directory.hpp"

namespace nexar {

namespace {

/// Blocks the signals that end a seed. Create it before the seed starts threads.
class EndSignals {
public:
    EndSignals() noexcept {
        sigemptyset(&set_);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, signal);
        ::sigprocmask(SIG_BLOCK, &set_, nullptr);
    }

    /// Waits up to a second for one of the signals; true if one arrived.
    bool came() const noexcept {
        constexpr timespec kSecond{.tv_sec = 1, .tv_nsec = 0};
        return ::sigtimedwait(&set_, nullptr, &kSecond) > 0;
    }

private:
    sigset_t set_;
};

SeedOptions seed_options(const ServeOptions& options, const std::vector<ConfigFlag>& flags) {
    SeedOptions seed;
    seed.listen = options.listen;
    seed.world = static_cast<int>(options.world);
    seed.max_world = static_cast<int>(options.max_world);
    seed.second = options.second;
    seed.ca_dir = options.ca_directory;
    seed.other_seeds = options.other_seeds;
    seed.restored = options.restored;
    seed.state_dir = options.state_directory.empty() ? security::default_state_directory().value()
                                                     : options.state_directory;
    for (const ConfigFlag& flag : flags) {
        std::string name = flag.name.substr(std::string_view("--nexar-").size());
        std::ranges::replace(name, '-', '_');
        seed.settings.emplace_back(std::move(name), flag.value.value_or(""));
    }
    return seed;
}

}  // namespace

int serve_seed(const ServeOptions& options, const std::vector<ConfigFlag>& flags) {
    const EndSignals signals;
    try {
        const SeedOptions wanted = seed_options(options, flags);
        const Seed seed(wanted);
        std::string addresses;
        for (const std::string& address : seed.addresses()) addresses += " " + address;
        fmt::print(
            "{}seed for {} rank{} at{}\nstate in {}\ncreate a join string with: nexar token create "
            "--uses {}{}\n",
            options.second ? "second " : "", options.world, options.world == 1 ? "" : "s",
            addresses, wanted.state_dir, options.world,
            options.state_directory.empty() ? "" : " --state " + wanted.state_dir);
        std::fflush(stdout);
        std::string said;
        while (!signals.came()) {
            const std::string status = seed.status();
            if (status == said) continue;
            said = status;
            fmt::print("{}\n", status);
            std::fflush(stdout);
        }
        return kExitOk;
    } catch (const Error& error) {
        fmt::print(stderr, "nexar seed: {}\n", error.what());
        return kExitFailure;
    }
}

}  // namespace nexar
