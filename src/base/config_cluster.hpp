#pragma once

#include <nexar/result.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace nexar {

// Settings of cluster scope are equal on all members. A member sends its own to a joining node,
// which adopts them unless it was configured with a different value.

/// A cluster setting as sent to a joining node: its canonical value, and a description of the
/// sender's source.
struct ClusterSetting {
    std::string name;
    std::string value;
    std::string origin;
};

/// The settings of cluster scope, in the order of the table.
std::vector<ClusterSetting> cluster_settings(const Config& config);

/// `config` with its defaults replaced by the cluster's values, which get the origin cluster. Fails
/// with an Error (bad_config) that shows both values and both origins if a local source set a
/// different value. Also fails if the cluster sends a setting twice, an unknown setting, or a value
/// that is not allowed, or if a local source set one that the cluster did not send: its older
/// members do not know it. A default that the cluster did not send stays.
Result<Config> adopt_cluster_settings(const Config& config,
                                      std::span<const ClusterSetting> cluster);

}  // namespace nexar
