#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/launch.hpp"

namespace nexar {

/// The variables from which launchers are detected; read_launch_environment() keeps only these.
std::span<const std::string_view> launch_variables() noexcept;

/// Prefix of the value that read_launch_environment() puts into PMI_FD; the id of the process that
/// serves PMI follows.
inline constexpr std::string_view kPmiServer = "served by process ";

/// An error in the variables of a launcher.
inline Error bad_launch(std::string message) {
    return {Errc::bad_config, std::move(message)};
}

/// The values of one launcher's variables, before they are compared with other launchers'. A value
/// that is not set is unknown.
struct LaunchClaim {
    Launcher launcher = Launcher::nexar_run;
    std::optional<std::uint32_t> rank{};
    std::optional<std::uint32_t> world{};
    std::optional<std::uint32_t> local_rank{};
    std::optional<std::uint32_t> local_size{};
    /// The number of instances of the launcher itself: torchrun runs once per host.
    std::optional<std::uint32_t> parts{};
    std::optional<std::string> host{};
    /// Addresses of `host`, for processes that cannot resolve its name.
    std::vector<std::string> host_addresses{};
    std::optional<std::uint16_t> port{};
    std::string job{};
    /// True if a script set the variables, not the launcher that they belong to.
    bool by_hand = false;
    std::vector<std::string> variables{};
    /// Describes what is missing if rank or world is unknown; else empty.
    std::string missing{};

    bool complete() const noexcept { return missing.empty(); }
};

/// Looks variables up and records those that exist.
class LaunchVariables {
public:
    explicit LaunchVariables(std::span<const NamedValue> environment) : environment_(environment) {}

    const std::string* find(std::string_view name);
    /// Reads a whole number from `least` to `most`; an Error names the variable and the value.
    Result<std::optional<std::uint32_t>> number(std::string_view name, std::uint32_t least,
                                                std::uint32_t most);
    /// The variables that were found, as "NAME=value"; each once.
    std::string seen_text() const;
    const std::vector<std::string>& seen() const noexcept { return seen_; }

private:
    std::span<const NamedValue> environment_;
    std::vector<std::string> seen_;
};

/// Reads the variables of one launcher; nullopt if none of them is set. Fails with bad_config if
/// values are impossible by themselves.
Result<std::optional<LaunchClaim>> read_claim(Launcher launcher,
                                              std::span<const NamedValue> environment);

/// Whether the text is a valid host name or address.
bool is_host(std::string_view text);

/// "host", "host:7400", "[::1]:7400", "::1". An Error (bad_config) names `variable`.
struct HostAndPort {
    std::string host;
    std::optional<std::uint16_t> port{};
};
Result<HostAndPort> parse_seed_host(std::string_view variable, std::string_view text);

}  // namespace nexar
