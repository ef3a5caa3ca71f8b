#pragma once

#include <array>
#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_file.hpp"
#include "base/config_flags.hpp"
#include "base/setting.hpp"

namespace nexar {

/// A value given by name: `log_level`, "debug" from code, NEXAR_LOG_LEVEL, "debug" from the
/// environment.
struct NamedValue {
    std::string name;
    std::string value;
};

/// The value of the first entry with this name; null if there is none.
const std::string* find_value(std::span<const NamedValue> values, std::string_view name) noexcept;

/// Everything that settings can come from, as values: who reads the environment and the files is
/// not this layer's business.
struct ConfigSources {
    std::vector<NamedValue> code{};
    std::vector<ConfigFlag> flags{};
    std::vector<NamedValue> environment{};  // names without NEXAR_ in front are not looked at
    std::vector<ConfigFile> files{};        // strongest first
};

/// Where a value came from. From weakest to strongest; what the cluster says is adopted only where
/// nothing but the default spoke (config_cluster.hpp).
enum class OriginKind : std::uint8_t { fallback, cluster, file, environment, command_line, code };

struct Origin {
    OriginKind kind = OriginKind::fallback;
    std::string place{};  // "/etc/nexar.toml:3", "NEXAR_LOG_LEVEL", "--nexar-log-level"
};

/// "default", "file /etc/nexar.toml:3", "environment NEXAR_LOG_LEVEL",
/// "command line --nexar-log-level", "code", "cluster".
std::string to_text(const Origin& origin);

/// Variables that start with NEXAR_ and are no settings. No setting may have the name of one.
inline constexpr auto kOtherVariables = std::to_array<std::string_view>({
    "NEXAR_CONFIG",           // a configuration file
    "NEXAR_JOB_SECRET",       // what members of a launched job know each other by
    "NEXAR_JOB_SECRET_FILE",  // a file that holds it
    "NEXAR_JOIN",             // a join string: how to reach and trust the seed
    "NEXAR_JOIN_FILE",        // a file that holds it
    "NEXAR_LAUNCHER",         // which launcher's variables count
    "NEXAR_LOCAL_RANK",       // what `nexar run` tells the processes that it starts
    "NEXAR_LOCAL_SIZE",       //
    "NEXAR_RANK",             //
    "NEXAR_SEED_HOST",        // where rank 0 of a launched job runs
    "NEXAR_SEED_PORT",        //
    "NEXAR_TEST_SEED",        // repeats a randomised test
    "NEXAR_WORLD_SIZE",       // of `nexar run`, and of a Kubernetes job
});

/// The value of every setting of a table, and where it came from. Immutable; any thread may read.
class Config {
public:
    struct Entry {
        const Setting* setting = nullptr;
        SettingValue value{};
        Origin origin{};
    };

    /// The strongest source of each setting wins: code, command line, environment, files in their
    /// order, default. A name given twice in code or on the command line counts with its last
    /// value, in the environment with its first, as for getenv. Every value is checked, also one
    /// that a stronger source overrides. On failure the Error (bad_config) names every problem, at
    /// most 16 of them. The table must be valid_table() and outlive the Config.
    static Result<Config> resolve(std::span<const Setting> table, const ConfigSources& sources);

    /// The entries in the order of the table.
    std::span<const Entry> entries() const noexcept { return entries_; }

    /// What deserves a look but is no error: unknown NEXAR_ variables, with the nearest name. Their
    /// values are not shown: a misspelled name may carry a secret.
    std::span<const std::string> warnings() const noexcept { return warnings_; }

    // The value of a setting; that it is in the table and of this type is the caller's contract.
    // Views live as long as the Config.
    const Entry& entry(std::string_view name) const noexcept;
    bool boolean(std::string_view name) const noexcept;
    std::int64_t integer(std::string_view name) const noexcept;
    double real(std::string_view name) const noexcept;
    std::uint64_t size(std::string_view name) const noexcept;
    Duration duration(std::string_view name) const noexcept;
    std::string_view choice(std::string_view name) const noexcept;
    std::string_view text(std::string_view name) const noexcept;

    /// The same Config with other values in place of some, for config_cluster.
    Config with(std::span<const Entry> replacements) const;

private:
    Config() = default;

    std::vector<Entry> entries_;
    std::vector<std::string> warnings_;

    friend class ConfigResolver;
};

/// One Error (bad_config) out of at least one problem; says how many there are and shows the first
/// 16, one per line.
Error config_error(std::span<const std::string> problems);

}  // namespace nexar
