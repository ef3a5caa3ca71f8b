#include "run/embedded_seed.hpp"

#include <nexar/seed.hpp>
#include <utility>

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
    if (!options.other_hosts) return start_at("127.0.0.1:0", options.world);
    auto both = start_at("[::]:0", options.world);
    return both ? std::move(both) : start_at("0.0.0.0:0", options.world);  // a host without IPv6
}

Result<EmbeddedSeed> EmbeddedSeed::start_at(const char* listen, std::uint32_t world) {
    SeedOptions wanted;
    wanted.listen = listen;
    wanted.world = static_cast<int>(world);
    try {
        auto body = std::make_unique<Body>(Body{.seed = Seed(wanted)});
        std::string join = body->seed.create_token({.uses = wanted.world});
        return EmbeddedSeed(std::move(body), std::move(join));
    } catch (const Error& error) {
        return error;
    }
}

}  // namespace nexar::run
