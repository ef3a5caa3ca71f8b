#include "security/state_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "security/digest.hpp"
#include "security/random_id.hpp"
#include "wire/codec.hpp"

namespace nexar::security {

namespace {

constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kMaxFileBytes = (std::size_t{1} << 27U) + kDigestBytes;
constexpr std::size_t kMaxTextBytes = std::size_t{64} * 1024 * 1024;
constexpr std::size_t kMaxKeyBytes = std::size_t{64} * 1024;

// Files that only a seed writes, and those that `nexar token` writes under its own lock.
constexpr auto kSeedFiles =
    std::to_array<std::string_view>({"addresses", "ca.key", "ca.pem", "peers.json", "seed"});
constexpr auto kTokenFiles = std::to_array<std::string_view>({"tokens"});

// `nexar peers` holds the lock for a moment to find out whether a seed does.
constexpr int kSeedLockTries = 20;
constexpr std::chrono::milliseconds kSeedLockPause{5};

template <class Message>
std::vector<std::byte> with_digest(const Message& message) {
    std::vector<std::byte> bytes = wire::to_bytes(message);
    const auto digest = sha256(bytes);
    bytes.insert(bytes.end(), digest.begin(), digest.end());
    return bytes;
}

template <class Message>
Result<Message> without_digest(std::span<const std::byte> bytes) {
    if (bytes.size() < wire::kFrameHeaderBytes + kDigestBytes) {
        return Error(Errc::malformed, "it is too short");
    }
    const auto frame = bytes.first(bytes.size() - kDigestBytes);
    if (!std::ranges::equal(sha256(frame), bytes.last(kDigestBytes))) {
        return Error(Errc::malformed, "its checksum is wrong: it was truncated or changed");
    }
    NEXAR_TRY_VALUE(header, wire::decode_frame_header(frame));
    if (header.type != Message::kType) {
        return Error(Errc::malformed,
                     fmt::format("it contains {} instead of {}", wire::name(header.type),
                                 wire::name(Message::kType)));
    }
    NEXAR_TRY_VALUE(decoded,
                    wire::decode_body<Message>(header, frame.subspan(wire::kFrameHeaderBytes)));
    return std::move(decoded.message);
}

Error damaged(const std::string& path, const Error& error) {
    return {Errc::bad_config,
            fmt::format("{} cannot be read: {}; restore an intact copy, or move it away to start "
                        "without it",
                        path, error.cause())};
}

/// Appends the inode and the birth time of a file, as far as the file system knows them.
Result<void> append_birth(std::vector<std::byte>& bytes, const std::string& path) {
    struct statx found = {};
    if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &found) !=
        0) {
        return Error(Errc::bad_config, fmt::format("{} cannot be examined: {}", path,
                                                   std::generic_category().message(errno)));
    }
    const bool has_birth = (found.stx_mask & STATX_BTIME) != 0;
    const std::array<std::uint64_t, 3> numbers{
        found.stx_ino, has_birth ? static_cast<std::uint64_t>(found.stx_btime.tv_sec) : 0,
        has_birth ? found.stx_btime.tv_nsec : 0};
    const auto raw = std::as_bytes(std::span(numbers));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
    return {};
}

/// Empty where the machine has none, as in a small container.
std::string machine_id() {
    std::ifstream file("/etc/machine-id");
    std::string id;
    std::getline(file, id);
    return id;
}

std::uint64_t seconds_of(WallTime time) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
}

WallTime time_of(std::uint64_t seconds) {
    constexpr std::uint64_t kLast = std::uint64_t{1}
                                    << 40U;  // wall_time() clamps to an earlier time
    return wall_time(static_cast<std::time_t>(std::min(seconds, kLast)));
}

}  // namespace

std::vector<std::byte> stored(const wire::StoredTokens& tokens) {
    return with_digest(tokens);
}

std::vector<std::byte> stored(const wire::StoredSeed& seed) {
    return with_digest(seed);
}

Result<wire::StoredTokens> read_stored_tokens(std::span<const std::byte> bytes) {
    return without_digest<wire::StoredTokens>(bytes);
}

Result<wire::StoredSeed> read_stored_seed(std::span<const std::byte> bytes) {
    return without_digest<wire::StoredSeed>(bytes);
}

wire::StoredTokens in_wire(const TokenTable& table) {
    wire::StoredTokens tokens;
    for (const auto& [id, token] : table.all()) {
        tokens.tokens.push_back({.id = id.bytes(),
                                 .secret_hash = token.secret_hash,
                                 .uses = token.uses,
                                 .created_at = seconds_of(token.created_at),
                                 .expires_at = seconds_of(token.expires_at),
                                 .revoked = token.revoked});
    }
    return tokens;
}

TokenTable from_wire(const wire::StoredTokens& tokens) {
    TokenTable table;
    for (const wire::StoredToken& token : tokens.tokens) {
        table.put({.id = TokenId(token.id),
                   .secret_hash = token.secret_hash,
                   .uses = token.uses,
                   .created_at = time_of(token.created_at),
                   .expires_at = time_of(token.expires_at),
                   .revoked = token.revoked});
    }
    return table;
}

Result<StateDirectory> StateDirectory::open(std::string path) {
    NEXAR_TRY(make_private_directory(path));
    return StateDirectory(std::move(path));
}

Result<Descriptor> StateDirectory::lock_for_seed() const {
    for (int i = 0; i < kSeedLockTries; ++i) {
        if (i > 0) std::this_thread::sleep_for(kSeedLockPause);
        NEXAR_TRY_VALUE(lock, lock_file(file("seed.lock"), false));
        if (lock) return std::move(*lock);
    }
    return Error(
        Errc::bad_config,
        fmt::format("another seed is running on {}; stop it, or use another directory with "
                    "--state",
                    path_));
}

bool StateDirectory::has_running_seed() const {
    std::error_code code;
    if (!std::filesystem::exists(file("seed.lock"), code)) return false;
    const auto lock = lock_file(file("seed.lock"), false);
    return lock && !*lock;
}

void StateDirectory::sweep() const {
    for (const std::string_view name : kSeedFiles) remove_unfinished(file(name));
    const auto lock = lock_file(file("tokens.lock"), true);
    if (!lock) return;
    for (const std::string_view name : kTokenFiles) remove_unfinished(file(name));
}

bool StateDirectory::was_used() const {
    std::error_code code;
    return std::filesystem::exists(file("seed"), code) ||
           std::filesystem::exists(file("tokens"), code);
}

Result<std::optional<KeyPair>> StateDirectory::kept_key() const {
    NEXAR_TRY_VALUE(pem, read_private_file(file("ca.key"), kMaxKeyBytes));
    if (!pem) return std::optional<KeyPair>{};
    auto key = KeyPair::from_pem(*pem);
    if (!key) return damaged(file("ca.key"), key.error());
    return std::optional<KeyPair>(std::move(*key));
}

Result<std::optional<ClusterCa>> StateDirectory::kept_ca() const {
    NEXAR_TRY_VALUE(key, kept_key());
    NEXAR_TRY_VALUE(pem, text("ca.pem"));
    if (!key && !pem) return std::optional<ClusterCa>{};
    // The first start of a seed was interrupted; nobody has seen this key yet, see ca().
    if (key && !pem && !was_used()) return std::optional<ClusterCa>{};
    if (!key || !pem) {
        return Error(
            Errc::bad_config,
            fmt::format("{} is missing although {} exists; restore it, or move the directory away "
                        "to start a new cluster",
                        file(key ? "ca.pem" : "ca.key"), file(key ? "ca.key" : "ca.pem")));
    }
    auto certificate = Certificate::from_pem(*pem);
    if (!certificate) return damaged(file("ca.pem"), certificate.error());
    NEXAR_TRY_VALUE(ca, ClusterCa::restore(std::move(*key), std::move(*certificate)));
    return std::optional<ClusterCa>(std::move(ca));
}

Result<ClusterCa> StateDirectory::existing_ca() const {
    NEXAR_TRY_VALUE(kept, kept_ca());
    if (kept) return std::move(*kept);
    return Error(Errc::bad_config,
                 fmt::format("there is no cluster in {} yet; `nexar seed --state {}` creates one",
                             path_, path_));
}

Result<ClusterCa> StateDirectory::ca(WallTime now) const {
    return ca(now, [] { return new_cluster_id(); });
}

Result<ClusterCa> StateDirectory::ca(WallTime now,
                                     const std::function<Result<ClusterId>()>& new_cluster) const {
    NEXAR_TRY_VALUE(kept, kept_ca());
    if (kept) return std::move(*kept);
    // Write the key first: if the seed is killed before it writes the certificate, the next start
    // finds the key and creates the certificate for it.
    NEXAR_TRY_VALUE(key, kept_key());
    if (!key) {
        NEXAR_TRY_VALUE(fresh, KeyPair::generate());
        NEXAR_TRY_VALUE(key_pem, fresh.to_pem());
        NEXAR_TRY(key_pem.reveal([&](std::span<const std::byte> bytes) {
            return write_private_file(file("ca.key"), bytes);
        }));
        key = std::move(fresh);
    }
    NEXAR_TRY_VALUE(cluster, new_cluster());
    NEXAR_TRY_VALUE(made, ClusterCa::create(cluster, std::move(*key), now));
    const std::string pem = made.certificate().to_pem();
    NEXAR_TRY(write_private_file(file("ca.pem"), std::as_bytes(std::span(pem))));
    return std::move(made);
}

Result<void> StateDirectory::copy_ca(const std::string& from) const {
    NEXAR_TRY_VALUE(other, StateDirectory::open(from));
    NEXAR_TRY_VALUE(theirs, other.existing_ca());
    NEXAR_TRY_VALUE(own, kept_ca());
    if (own) {
        if (own->key().public_key_hash() == theirs.key().public_key_hash()) return {};
        return Error(Errc::bad_config,
                     fmt::format("{} already has a CA, and it is not that of {}; use a new state "
                                 "directory for a second seed",
                                 path_, from));
    }
    NEXAR_TRY_VALUE(key, theirs.key().to_pem());
    NEXAR_TRY(key.reveal([&](std::span<const std::byte> bytes) {
        return write_private_file(file("ca.key"), bytes);
    }));
    const std::string pem = theirs.certificate().to_pem();
    return write_private_file(file("ca.pem"), std::as_bytes(std::span(pem)));
}

Result<TokenTable> StateDirectory::tokens() const {
    NEXAR_TRY_VALUE(content, read_private_file(file("tokens"), kMaxFileBytes));
    if (!content) return TokenTable();
    auto read = content->reveal(read_stored_tokens);
    if (!read) return damaged(file("tokens"), read.error());
    return from_wire(*read);
}

Result<void> StateDirectory::change_tokens(
    const std::function<Result<void>(TokenTable&)>& change) const {
    const auto lock = lock_file(file("tokens.lock"), true);
    if (!lock) return lock.error();
    NEXAR_TRY_VALUE(table, tokens());
    NEXAR_TRY(change(table));
    return write_private_file(file("tokens"), stored(in_wire(table)));
}

Result<std::array<std::byte, 32>> StateDirectory::origin() const {
    std::vector<std::byte> bytes;
    const std::string machine = "nexar seed state 1 " + machine_id();
    const auto text = std::as_bytes(std::span(machine));
    bytes.assign(text.begin(), text.end());
    NEXAR_TRY(append_birth(bytes, path_));
    NEXAR_TRY(append_birth(bytes, file("ca.key")));
    return sha256(bytes);
}

Result<std::optional<wire::StoredSeed>> StateDirectory::seed() const {
    NEXAR_TRY_VALUE(content, read_private_file(file("seed"), kMaxFileBytes));
    if (!content) return std::optional<wire::StoredSeed>{};
    auto read = content->reveal(read_stored_seed);
    if (!read) return damaged(file("seed"), read.error());
    return std::optional(std::move(*read));
}

Result<void> StateDirectory::keep(const wire::StoredSeed& seed) const {
    return write_private_file(file("seed"), stored(seed));
}

Result<std::optional<std::string>> StateDirectory::text(std::string_view name) const {
    NEXAR_TRY_VALUE(content, read_private_file(file(name), kMaxTextBytes));
    if (!content) return std::optional<std::string>{};
    return content->reveal([](std::span<const std::byte> bytes) {
        return std::optional(
            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    });
}

Result<std::vector<std::string>> StateDirectory::addresses() const {
    NEXAR_TRY_VALUE(content, text("addresses"));
    std::vector<std::string> lines;
    for (std::string_view rest = content ? *content : std::string_view{}; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        if (end != 0) lines.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return lines;
}

Result<void> StateDirectory::keep_addresses(const std::vector<std::string>& addresses) const {
    std::string lines;
    for (const std::string& address : addresses) lines += address + "\n";
    return write_private_file(file("addresses"), std::as_bytes(std::span(lines)));
}

Result<std::optional<std::string>> StateDirectory::peers() const {
    return text("peers.json");
}

Result<void> StateDirectory::keep_peers(const std::string& json) const {
    return write_private_file(file("peers.json"), std::as_bytes(std::span(json)));
}

Result<std::string> default_state_directory() {
    // NOLINTBEGIN(concurrency-mt-unsafe): read at the start of a program
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    // NOLINTEND(concurrency-mt-unsafe)
    if (state != nullptr && *state == '/') return std::string(state) + "/nexar";
    if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/nexar";
    return Error(
        Errc::bad_config,
        "neither HOME nor XDG_STATE_HOME is set; name a directory for the cluster's keys with "
        "--state");
}

}  // namespace nexar::security
