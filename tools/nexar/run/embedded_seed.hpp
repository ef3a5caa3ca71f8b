#pragma once

#include <cstdint>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/supervisor.hpp"

namespace nexar::run {

/// The seed that lives in the launcher as long as the run.
class EmbeddedSeed {
public:
    struct Options {
        std::uint32_t world = 1;
        bool other_hosts = false;  // else it listens on loopback only
        /// By their names; those of the cluster go to all ranks.
        std::vector<std::pair<std::string, std::string>> settings{};
    };

    static Result<EmbeddedSeed> start(const Options& options);

    EmbeddedSeed(EmbeddedSeed&&) noexcept;
    EmbeddedSeed& operator=(EmbeddedSeed&&) noexcept;
    ~EmbeddedSeed();

    /// How the ranks reach and trust it, good for all of them. A secret.
    const std::string& join() const noexcept { return join_; }

    /// A rank has ended and will not come back. If the ranks have not met yet, they never will: all
    /// who try are told why. `how` is "exited with code 0".
    void give_up_on(std::uint32_t rank, const std::string& how);

    /// The abort that a rank told of, if one did.
    std::optional<Error> aborted() const;

private:
    static Result<EmbeddedSeed> start_at(const char* listen, const Options& options);

    struct Body;
    EmbeddedSeed(std::unique_ptr<Body> body, std::string join) noexcept;

    std::unique_ptr<Body> body_;
    std::string join_;
};

/// supervise() with a seed of its own for the ranks.
Result<int> supervise_with_seed(const SupervisorOptions& options,
                                const EmbeddedSeed::Options& seed);

}  // namespace nexar::run
