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
    /// Address and UDP port; port 0 selects a free one. Empty means all addresses, port 7400.
    std::string listen{};
    /// Members with which the cluster forms, 1 to 16384. Later, processes may join and leave.
    int world = 1;
    /// The most members that the cluster may ever have at the same time; 0: 16384.
    int max_world = 0;
    /// Directory for the cluster's keys and members; created if absent. If empty, nothing is
    /// stored, and the cluster ends with this object.
    std::string state_dir{};
    /// The state was restored from a copy that the seed cannot recognise as one, such as a snapshot
    /// of the disk or of the whole machine. The seed then does not vote on changes of the members
    /// until they accept it again: votes that it has forgotten could otherwise split the cluster.
    bool restored = false;
    /// This seed stands in for another one, which forms the cluster: it learns the members from
    /// them, lets processes join, and becomes the witness when the other seed is gone. Both need
    /// the same CA.
    bool second = false;
    /// A directory with the CA (ca.key, ca.pem) of another seed of the same cluster, which a seed
    /// without a CA of its own copies into its state directory.
    std::string ca_dir{};
    /// Addresses of the other seeds of this cluster; join strings name them after this seed's own.
    std::vector<std::string> other_seeds{};
    /// Processes that prove that they know this secret may join without a token. At least 128 bits.
    std::string job_secret{};
    /// Settings by name; the seed sends cluster settings to all members.
    std::vector<std::pair<std::string, std::string>> settings{};
};

/// The process that new members contact first. It forms the cluster: it admits the first members,
/// assigns their ranks and tells them about each other. Later it proposes processes that join, and
/// votes on changes of the members when their number is even. It is never on the data path; when it
/// ends, the members continue to work.
///
/// Runs in its own thread from construction until close(). Any thread may call. Throws Error.
class NEXAR_EXPORT Seed {
public:
    explicit Seed(const SeedOptions& options);
    Seed(Seed&&) noexcept;
    Seed& operator=(Seed&&) noexcept;
    ~Seed();

    /// The addresses at which processes reach the seed, best first.
    std::vector<std::string> addresses() const;

    /// Creates a join string for new members. It is a secret.
    std::string create_token(const TokenOptions& options = {});

    /// Describes what the seed is waiting for: "3 of 4 joined; 10.0.0.7 presented an expired
    /// token".
    std::string status() const;
    /// True once a cluster has formed, also after all its members have left.
    bool formed() const;

    /// For a launcher: reports that its process for `rank` has ended and will not be restarted. If
    /// the cluster has not formed yet, formation fails: every process that waits to join, or tries
    /// to later, gets Errc::closed and "the cluster cannot form: rank 2 exited with code 0 before
    /// it had joined", where `how` is "exited with code 0". If the cluster has already formed, this
    /// does nothing and returns false.
    bool give_up_on(int rank, const std::string& how);

    /// For a launcher: the first abort (Communicator::abort) of this world that a member reported.
    /// A member that aborts reports it to the seed before it notifies the other members, so if a
    /// process ends because of an abort, this is already set.
    std::optional<Error> aborted() const;

    void close();

private:
    std::shared_ptr<detail::SeedBody> body_;
};

}  // namespace nexar
