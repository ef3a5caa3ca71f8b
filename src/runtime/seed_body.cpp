#include "runtime/seed_body.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/log.hpp"
#include "base/try.hpp"
#include "link/carriers.hpp"
#include "runtime/config_sources.hpp"
#include "wire/limits.hpp"

namespace nexar::detail {

namespace {

constexpr int kMostMembers = wire::kMaxViewMembers;
constexpr Duration kSeedCloseTime = std::chrono::seconds(5);
constexpr std::string_view kAnyAddress = "[::]:7400";
constexpr std::string_view kAnyV4Address = "0.0.0.0:7400";

Result<std::unique_ptr<port::Carrier>> listen(const std::string& where, BufferPool& pool,
                                              const runtime::SeedServer& server) {
    const auto open = [&](std::string_view text) -> Result<std::unique_ptr<port::Carrier>> {
        NEXAR_TRY_VALUE(address, Address::parse(text));
        NEXAR_TRY_VALUE(options, server.carrier_options());
        options.local = address;
        return link::open_carrier(pool, std::move(options));
    };
    if (!where.empty()) return open(where);
    auto both = open(kAnyAddress);
    return both ? std::move(both) : open(kAnyV4Address);  // a host without IPv6
}

}  // namespace

Result<std::shared_ptr<SeedBody>> SeedBody::open(const SeedOptions& options,
                                                 runtime::HostServices services) {
    if (options.world < 1 || options.world > kMostMembers) {
        return Error(Errc::invalid_argument,
                     fmt::format("a cluster of {} members was requested; allowed: 1 to {}",
                                 options.world, kMostMembers));
    }
    if (options.max_world < 0 || options.max_world > kMostMembers ||
        (options.max_world > 0 && options.max_world < options.world)) {
        return Error(Errc::invalid_argument,
                     fmt::format("a cluster of {0} members cannot be limited to {1}; allowed: {0} "
                                 "to {2}",
                                 options.world, options.max_world, kMostMembers));
    }
    std::vector<NamedValue> code;
    code.reserve(options.settings.size());
    for (const auto& [name, value] : options.settings) code.push_back({name, value});
    NEXAR_TRY_VALUE(loaded, load_config(std::move(code), {}));
    std::shared_ptr<SeedBody> body(new SeedBody);
    NEXAR_TRY_VALUE(server, runtime::SeedServer::open(options, std::move(loaded.config),
                                                      std::move(services), body->clock_.now()));
    body->server_ = std::move(server);
    NEXAR_TRY_VALUE(carrier, listen(options.listen, body->pool_, *body->server_));
    body->carrier_ = std::move(carrier);
    body->carriers_ = {body->carrier_.get()};
    NEXAR_TRY(body->server_->serve(*body->carrier_, body->clock_.now()));
    NEXAR_TRY_VALUE(loop, runtime::make_loop({}));
    body->loop_ = loop;
    NEXAR_TRY(body->loop_->progress->add(*body));
    ++body->loop_->nodes;
    return body;
}

SeedBody::~SeedBody() = default;

Result<std::string> SeedBody::create_token(const TokenOptions& options) {
    const runtime::Progress::Guard guard(*loop_->progress);
    return server_->create_token(options);
}

std::string SeedBody::status() {
    const runtime::Progress::Guard guard(*loop_->progress);
    return server_->status();
}

bool SeedBody::formed() {
    const runtime::Progress::Guard guard(*loop_->progress);
    return server_->has_formed();
}

std::optional<Error> SeedBody::aborted() {
    const runtime::Progress::Guard guard(*loop_->progress);
    return server_->aborted();
}

bool SeedBody::give_up_on(Rank rank, const std::string& how) {
    const runtime::Progress::Guard guard(*loop_->progress);
    return server_->give_up_on(rank, how, clock_.now());
}

bool SeedBody::turn(TimePoint now) noexcept {
    const bool arrived = server_->turn(now);
    look_whether_idle();
    return arrived;
}

/// Under the lock.
void SeedBody::look_whether_idle() {
    if (!closing_ || idle_told_ || !server_->idle()) return;
    idle_told_ = true;
    loop_->progress->complete(idle_);
}

void SeedBody::close() {
    {
        const runtime::Progress::Guard guard(*loop_->progress);
        if (std::exchange(closing_, true)) return;
        server_->close(clock_.now());
        look_whether_idle();
    }
    if (!loop_->progress->wait(idle_, clock_.now() + kSeedCloseTime)) {
        NEXAR_LOG_WARNING("a seed closed before all its links had ended");
    }
    loop_->progress->remove(*this);
    if (--loop_->nodes == 0) loop_->progress->stop();
}

void SeedBody::let_go(std::shared_ptr<SeedBody> body) {
    if (!body) return;
    if (body->loop_->progress->forked()) return runtime::keep_in_child(std::move(body));
    body->close();
}

}  // namespace nexar::detail
