#pragma once

#include <chrono>
#include <memory>
#include <nexar/error.hpp>
#include <nexar/export.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nexar {

namespace detail {
class SeedBody;
}

struct TokenOptions {
    int uses = 1;
    std::chrono::seconds ttl = std::chrono::hours(1);
};

struct SeedOptions {
    /// Address and UDP port; port 0 takes a free one. Empty: all addresses, port 7400.
    std::string listen{};
    /// Members of the cluster.
    int world = 1;
    /// Where the cluster's keys and members are kept; made when absent. Empty: nowhere, the cluster
    /// ends with this object.
    std::string state_dir{};
    /// Lets in, beside the holders of tokens, all who prove to know it; at least 128 bits.
    std::string job_secret{};
    /// Settings by their names; those of the cluster go to all members.
    std::vector<std::pair<std::string, std::string>> settings{};
};

/// The door of a cluster: lets processes in, tells them who they are and who the others are. Never
/// on the path of data; when it ends, members go on.
///
/// Runs in a thread of its own from construction to close(). Any thread may call. Throws Error.
class NEXAR_EXPORT Seed {
public:
    explicit Seed(const SeedOptions& options);
    Seed(Seed&&) noexcept;
    Seed& operator=(Seed&&) noexcept;
    ~Seed();

    /// Where it is reached, best first.
    std::vector<std::string> addresses() const;

    /// A join string: a secret, for those who shall join.
    std::string create_token(const TokenOptions& options = {});

    /// What it waits for, in words: "3 of 4 joined; 10.0.0.7 presented an expired token".
    std::string status() const;
    bool formed() const;

    /// For a launcher: its process for `rank` has ended, and it will not start another one. Until
    /// the cluster has formed this ends the formation: everybody who waits to join, or comes later,
    /// gets Errc::closed and "the cluster cannot form: rank 2 exited with code 0 before it had
    /// joined", where `how` is "exited with code 0". Returns false, and does nothing, when the
    /// cluster has formed already.
    bool give_up_on(int rank, const std::string& how);

    /// For a launcher: the first abort (Communicator::abort) of this world, as a member told it. A
    /// member that aborts tells its seed before the other members hear of it, so a process that
    /// ends because of an abort ends after this is set.
    std::optional<Error> aborted() const;

    void close();

private:
    std::shared_ptr<detail::SeedBody> body_;
};

}  // namespace nexar
