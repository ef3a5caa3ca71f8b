#include "run/embedded_seed.hpp"

#include <nexar/seed.hpp>
#include <optional>
#include <utility>

#include "base/try.hpp"

namespace nexar::run {

struct EmbeddedSeed::Body {
    Seed seed;
};

EmbeddedSeed::EmbeddedSeed(std::unique_ptr<Body> body, std::string join) noexcept
    : body_(std::move(body)), join_(std::move(join)) {}
EmbeddedSeed::EmbeddedSeed(EmbeddedSeed&&) noexcept = default;
EmbeddedSeed& EmbeddedSeed::operator=(EmbeddedSeed&&) noexcept = default;
EmbeddedSeed::~EmbeddedSeed() = default;

Result<EmbeddedSeed> EmbeddedSeed::start(const Options& options) {
    if (!options.other_hosts) return start_at("127.0.0.1:0", options);
    auto both = start_at("[::]:0", options);
    return both ? std::move(both) : start_at("0.0.0.0:0", options);  // a host without IPv6
}

Result<EmbeddedSeed> EmbeddedSeed::start_at(const char* listen, const Options& options) {
    SeedOptions wanted;
    wanted.listen = listen;
    wanted.world = static_cast<int>(options.world);
    wanted.settings = options.settings;
    try {
        auto body = std::make_unique<Body>(Body{.seed = Seed(wanted)});
        std::string join = body->seed.create_token({.uses = wanted.world});
        return EmbeddedSeed(std::move(body), std::move(join));
    } catch (const Error& error) {
        return error;
    }
}

Result<int> supervise_with_seed(const SupervisorOptions& options,
                                const EmbeddedSeed::Options& seed) {
    std::optional<EmbeddedSeed> running;
    const auto open_join = [&]() -> Result<std::string> {
        NEXAR_TRY_VALUE(started, EmbeddedSeed::start(seed));
        running.emplace(std::move(started));
        return running->join();
    };
    return supervise(options, open_join);
}

}  // namespace nexar::run
