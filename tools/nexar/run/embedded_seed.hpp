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

/// The seed inside the launcher, which lives as long as the run.
class EmbeddedSeed {
public:
    struct Options {
        std::uint32_t world = 1;
        std::uint32_t max_world = 0;  // the most members at a time; 0: no limit
        bool other_hosts = false;     // false: listens on loopback only
        /// Names and values; the seed gives cluster settings to all ranks.
        std::vector<std::pair<std::string, std::string>> settings{};
    };

    static Result<EmbeddedSeed> start(const Options& options);

    EmbeddedSeed(EmbeddedSeed&&) noexcept;
    EmbeddedSeed& operator=(EmbeddedSeed&&) noexcept;
    ~EmbeddedSeed();

    /// The join string with which all ranks find and authenticate the seed. A secret.
    const std::string& join() const noexcept { return join_; }

    /// A join string for one more process. A secret.
    Result<std::string> join_again();

    bool formed() const;

    /// A rank has ended for good. If the world has not formed yet, it never will, and every rank
    /// that tries to join learns why. `how` is a text such as "exited with code 0".
    void give_up_on(std::uint32_t rank, const std::string& how);

    /// The abort that a rank reported, if any.
    std::optional<Error> aborted() const;

private:
    static Result<EmbeddedSeed> start_at(const char* listen, const Options& options);

    struct Body;
    EmbeddedSeed(std::unique_ptr<Body> body, std::string join) noexcept;

    std::unique_ptr<Body> body_;
    std::string join_;
};

/// supervise() with an embedded seed for the ranks.
Result<int> supervise_with_seed(const SupervisorOptions& options,
                                const EmbeddedSeed::Options& seed);

}  // namespace nexar::run
