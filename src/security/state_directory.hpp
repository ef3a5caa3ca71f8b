#pragma once

#include <array>
#include <functional>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <vector>

#include "security/cluster_ca.hpp"
#include "security/private_file.hpp"
#include "security/token_table.hpp"
#include "security/wall_time.hpp"
#include "wire/seed_messages.hpp"

namespace nexar::security {

/// Encode and decode files: a frame, followed by its SHA-256. The decoders accept arbitrary bytes;
/// they fail with malformed or similar and say what is wrong.
std::vector<std::byte> stored(const wire::StoredTokens& tokens);
std::vector<std::byte> stored(const wire::StoredSeed& seed);
Result<wire::StoredTokens> read_stored_tokens(std::span<const std::byte> bytes);
Result<wire::StoredSeed> read_stored_seed(std::span<const std::byte> bytes);

wire::StoredTokens in_wire(const TokenTable& table);
TokenTable from_wire(const wire::StoredTokens& tokens);

/// The state that a seed keeps across restarts, in a directory of its own (mode 0700, files 0600):
///
///     ca.key, ca.pem   the cluster CA
///     tokens           the tokens that admit joiners; written by `nexar token`, read by the seed
///     seed             the nodes that the seed has admitted; written by the seed
///     addresses        the addresses that the seed listens on, one per line
///     peers.json       the members and what they reported about their links
///     seed.lock        held by the running seed
class StateDirectory {
public:
    static Result<StateDirectory> open(std::string path);

    const std::string& path() const noexcept { return path_; }

    /// Held by a seed while it runs. Fails with bad_config if another seed runs on this directory.
    Result<Descriptor> lock_for_seed() const;

    /// Returns true if a seed holds the lock now.
    bool has_running_seed() const;
    /// Removes temporary files of a killed seed or `nexar token`. Only the seed that holds the lock
    /// may call this.
    void sweep() const;

    /// Reads the CA, or creates it if there is none yet. If a process is killed at any point of the
    /// creation, the next call completes it.
    Result<ClusterCa> ca(WallTime now) const;
    /// The same with another source of the id of a new cluster.
    Result<ClusterCa> ca(WallTime now, const std::function<Result<ClusterId>()>& new_cluster) const;
    /// Fails with bad_config if there is none yet.
    Result<ClusterCa> existing_ca() const;
    /// Copies the CA of another directory, which may have no other files. Fails with bad_config if
    /// this directory has a different one.
    Result<void> copy_ca(const std::string& from) const;

    Result<TokenTable> tokens() const;
    /// Locks the table, lets `change` modify it, and writes it; writes nothing if `change` fails.
    Result<void> change_tokens(const std::function<Result<void>(TokenTable&)>& change) const;

    /// Identifies this copy of the directory: a hash of the machine, and of the inodes and birth
    /// times of the directory and of the CA's key, which no command changes. A copy, a restored
    /// backup or a directory on another machine has another value; a snapshot of a whole disk or
    /// machine has the same one.
    Result<std::array<std::byte, 32>> origin() const;

    Result<std::optional<wire::StoredSeed>> seed() const;
    Result<void> keep(const wire::StoredSeed& seed) const;

    Result<std::vector<std::string>> addresses() const;
    Result<void> keep_addresses(const std::vector<std::string>& addresses) const;

    Result<std::optional<std::string>> peers() const;
    Result<void> keep_peers(const std::string& json) const;

private:
    explicit StateDirectory(std::string path) noexcept : path_(std::move(path)) {}

    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    Result<std::optional<std::string>> text(std::string_view name) const;
    Result<std::optional<ClusterCa>> kept_ca() const;
    Result<std::optional<KeyPair>> kept_key() const;
    /// Returns true if somebody may know the CA: a seed has run with it, or a token was created.
    bool was_used() const;

    std::string path_;
};

/// The default state directory: $XDG_STATE_HOME/nexar or ~/.local/state/nexar.
Result<std::string> default_state_directory();

}  // namespace nexar::security
