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

/// The variables that launchers are told by; all that read_launch_environment() keeps.
std::span<const std::string_view> launch_variables() noexcept;

/// How read_launch_environment() writes PMI_FD: this, and the number of the process that serves
/// PMI.
inline constexpr std::string_view kPmiServer = "served by process ";

/// An error in what the launchers say.
inline Error bad_launch(std::string message) {
    return {Errc::bad_config, std::move(message)};
}

/// What the variables of one launcher say, before it was compared with the others. A number that is
/// not set is not known.
struct LaunchClaim {
    Launcher launcher = Launcher::nexar_run;
    std::optional<std::uint32_t> rank{};
    std::optional<std::uint32_t> world{};
    std::optional<std::uint32_t> local_rank{};
    std::optional<std::uint32_t> local_size{};
    /// In how many parts the launcher itself was started: torchrun on each host.
    std::optional<std::uint32_t> parts{};
    std::optional<std::string> host{};
    /// Addresses of the same host, for processes that cannot look up its name.
    std::vector<std::string> host_addresses{};
    std::optional<std::uint16_t> port{};
    std::string job{};
    /// Set by a script and not by the launcher whose names they are.
    bool by_hand = false;
    std::vector<std::string> variables{};
    /// Says what is missing, where rank or world are.
    std::string missing{};

    bool complete() const noexcept { return missing.empty(); }
};

/// Looks variables up and keeps which there were.
class LaunchVariables {
public:
    explicit LaunchVariables(std::span<const NamedValue> environment) : environment_(environment) {}

    const std::string* find(std::string_view name);
    /// A whole number from `least` to `most`; an Error names the variable and the value.
    Result<std::optional<std::uint32_t>> number(std::string_view name, std::uint32_t least,
                                                std::uint32_t most);
    /// The variables that were found, as "NAME=value"; each once.
    std::string seen_text() const;
    const std::vector<std::string>& seen() const noexcept { return seen_; }

private:
    std::span<const NamedValue> environment_;
    std::vector<std::string> seen_;
};

/// What one launcher says; nothing when none of its variables is there. An Error (bad_config) for
/// values that cannot be, whatever the other launchers say.
Result<std::optional<LaunchClaim>> read_claim(Launcher launcher,
                                              std::span<const NamedValue> environment);

/// Whether the text can be the name or the address of a host.
bool is_host(std::string_view text);

/// "host", "host:7400", "[::1]:7400", "::1". An Error (bad_config) names `variable`.
struct HostAndPort {
    std::string host;
    std::optional<std::uint16_t> port{};
};
Result<HostAndPort> parse_seed_host(std::string_view variable, std::string_view text);

}  // namespace nexar
