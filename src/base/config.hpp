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

/// A name and its value: {"log_level", "debug"} from code, {"NEXAR_LOG_LEVEL", "debug"} from the
/// environment.
struct NamedValue {
    std::string name;
    std::string value;
};

/// The value of the first entry with this name; null if there is none.
const std::string* find_value(std::span<const NamedValue> values, std::string_view name) noexcept;

/// Every source of settings, as values: this layer reads neither the environment nor files.
struct ConfigSources {
    std::vector<NamedValue> code{};
    std::vector<ConfigFlag> flags{};
    std::vector<NamedValue> environment{};  // names that do not start with NEXAR_ are ignored
    std::vector<ConfigFile> files{};        // strongest first
};

/// Where a value came from, from weakest to strongest. The cluster's value replaces only a default
/// (config_cluster.hpp).
enum class OriginKind : std::uint8_t { fallback, cluster, file, environment, command_line, code };

struct Origin {
    OriginKind kind = OriginKind::fallback;
    std::string place{};  // "/etc/nexar.toml:3", "NEXAR_LOG_LEVEL", "--nexar-log-level"
};

/// "default", "file /etc/nexar.toml:3", "environment NEXAR_LOG_LEVEL",
/// "command line --nexar-log-level", "code", "cluster".
std::string to_text(const Origin& origin);

/// Variables that start with NEXAR_ but are not settings. No setting may use one of these names.
inline constexpr auto kOtherVariables = std::to_array<std::string_view>({
    "NEXAR_CONFIG",           // a configuration file
    "NEXAR_JOB_SECRET",       // proves membership of a launched job
    "NEXAR_JOB_SECRET_FILE",  // a file that holds it
    "NEXAR_JOIN",             // a join string: how to reach and trust the seed
    "NEXAR_JOIN_FILE",        // a file that holds it
    "NEXAR_LAUNCHER",         // which launcher's variables to read
    "NEXAR_LOCAL_RANK",       // set by `nexar run` for the processes it starts
    "NEXAR_LOCAL_SIZE",       //
    "NEXAR_RANK",             //
    "NEXAR_RESTARTED",        //
    "NEXAR_SEED_HOST",        // where rank 0 of a launched job runs
    "NEXAR_SEED_PORT",        //
    "NEXAR_TEST_SEED",        // repeats a randomised test
    "NEXAR_WORLD_SIZE",       // set by `nexar run`, or in a Kubernetes job
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
    /// order, default. If a name occurs twice in code or on the command line, the last value
    /// counts; in the environment the first does, as with getenv. Every value is checked, even one
    /// that a stronger source overrides. On failure the Error (bad_config) lists the problems, at
    /// most 16 of them. The table must be valid_table() and outlive the Config.
    static Result<Config> resolve(std::span<const Setting> table, const ConfigSources& sources);

    /// The entries in the order of the table.
    std::span<const Entry> entries() const noexcept { return entries_; }

    /// Problems that are not errors: unknown NEXAR_ variables, with the most similar known name.
    /// Warnings omit the values: a misspelled variable may hold a secret.
    std::span<const std::string> warnings() const noexcept { return warnings_; }

    // The value of a setting, which must be in the table and have this type. Views live as long as
    // the Config.
    const Entry& entry(std::string_view name) const noexcept;
    bool boolean(std::string_view name) const noexcept;
    std::int64_t integer(std::string_view name) const noexcept;
    double real(std::string_view name) const noexcept;
    std::uint64_t size(std::string_view name) const noexcept;
    Duration duration(std::string_view name) const noexcept;
    std::string_view choice(std::string_view name) const noexcept;
    std::string_view text(std::string_view name) const noexcept;

    /// A copy with some entries replaced, for config_cluster.
    Config with(std::span<const Entry> replacements) const;

private:
    Config() = default;

    std::vector<Entry> entries_;
    std::vector<std::string> warnings_;

    friend class ConfigResolver;
};

/// Combines one or more problems into one Error (bad_config) that gives their number and lists the
/// first 16, one per line.
Error config_error(std::span<const std::string> problems);

}  // namespace nexar
