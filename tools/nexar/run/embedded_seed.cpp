#include "run/embedded_seed.hpp"

#include <nexar/seed.hpp>
#include <optional>
#include <utility>

#include "base/try.hpp"
#include "run/ended.hpp"

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
    wanted.max_world = static_cast<int>(options.max_world);
    wanted.settings = options.settings;
    try {
        auto body = std::make_unique<Body>(Body{.seed = Seed(wanted)});
        std::string join = body->seed.create_token({.uses = wanted.world});
        return EmbeddedSeed(std::move(body), std::move(join));
    } catch (const Error& error) {
        return error;
    }
}

Result<std::string> EmbeddedSeed::join_again() {
    try {
        return body_->seed.create_token();
    } catch (const Error& error) {
        return error;
    }
}

bool EmbeddedSeed::formed() const {
    return body_->seed.formed();
}

void EmbeddedSeed::give_up_on(std::uint32_t rank, const std::string& how) {
    body_->seed.give_up_on(static_cast<int>(rank), how);
}

std::optional<Error> EmbeddedSeed::aborted() const {
    return body_->seed.aborted();
}

namespace {

class MeetingAtSeed final : public Meeting {
public:
    explicit MeetingAtSeed(const EmbeddedSeed::Options& options) : options_(options) {}

    Result<std::string> open() override {
        NEXAR_TRY_VALUE(started, EmbeddedSeed::start(options_));
        seed_.emplace(std::move(started));
        return seed_->join();
    }

    Result<std::string> join_again() override {
        if (!seed_) return Error(Errc::closed, "the seed of this run is not open");
        return seed_->join_again();
    }

    bool formed() override { return seed_ && seed_->formed(); }

    void on_rank_done(std::uint32_t rank) override {
        if (seed_) seed_->give_up_on(rank, to_text(Ended{}));
    }

    std::optional<Error> aborted() override { return seed_ ? seed_->aborted() : std::nullopt; }

private:
    const EmbeddedSeed::Options& options_;
    std::optional<EmbeddedSeed> seed_;
};

}  // namespace

Result<int> supervise_with_seed(const SupervisorOptions& options,
                                const EmbeddedSeed::Options& seed) {
    MeetingAtSeed meeting(seed);
    return supervise(options, meeting);
}

}  // namespace nexar::run
