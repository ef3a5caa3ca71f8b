#pragma once

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

/// Bytes of a file of frames, and back: the frame, then the SHA-256 of it. The decoders take any
/// bytes; an Error (malformed and the like) says what is wrong with them.
std::vector<std::byte> stored(const wire::StoredTokens& tokens);
std::vector<std::byte> stored(const wire::StoredSeed& seed);
Result<wire::StoredTokens> read_stored_tokens(std::span<const std::byte> bytes);
Result<wire::StoredSeed> read_stored_seed(std::span<const std::byte> bytes);

wire::StoredTokens in_wire(const TokenTable& table);
TokenTable from_wire(const wire::StoredTokens& tokens);

/// What a seed keeps between its lives, in a directory of its own (mode 0700, files 0600):
///
///     ca.key, ca.pem   the cluster's authority
///     tokens           who may come in; written by `nexar token`, read by the seed
///     seed             whom the seed has let in; written by the seed
///     addresses        where the seed listens, a line each
///     peers.json       the members and what they told of their links
///     seed.lock        held by the seed that runs
class StateDirectory {
public:
    static Result<StateDirectory> open(std::string path);

    const std::string& path() const noexcept { return path_; }

    /// For the life of a seed; an Error (bad_config) when another one runs on it.
    Result<Descriptor> lock_for_seed() const;

    /// Whether a seed holds the lock now.
    bool has_running_seed() const;
    /// Removes the files that a killed seed or `nexar token` was writing. For the seed that holds
    /// the lock.
    void sweep() const;

    /// The one that is kept; made when there is none yet. A kill at any moment of the making
    /// leaves a directory from which the next call makes it.
    Result<ClusterCa> ca(WallTime now) const;
    /// An Error (bad_config) when there is none yet.
    Result<ClusterCa> existing_ca() const;

    Result<TokenTable> tokens() const;
    /// Lets `change` alter the table and keeps it, with others locked out; nothing is kept when it
    /// fails.
    Result<void> change_tokens(const std::function<Result<void>(TokenTable&)>& change) const;

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
    /// Whether anybody may know the authority: a seed has run with it, or a token was made.
    bool was_used() const;

    std::string path_;
};

/// Where a seed keeps its state when nobody says: $XDG_STATE_HOME/nexar or ~/.local/state/nexar.
Result<std::string> default_state_directory();

}  // namespace nexar::security
