#pragma once

#include <nexar/result.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace nexar {

// Settings of cluster scope are equal on all members. A member tells a joiner its own; the joiner
// adopts them, unless it was told another value.

/// A cluster setting as it travels: canonical value, and where the sender has it from, in words.
struct ClusterSetting {
    std::string name;
    std::string value;
    std::string origin;
};

/// The settings of cluster scope, in the order of the table.
std::vector<ClusterSetting> cluster_settings(const Config& config);

/// `config` with the cluster's values, origin cluster, where it holds only the default. An Error
/// (bad_config) with both values and both origins where a source set another value; also where the
/// cluster names a setting twice, one that this version does not know, or a value that it does not
/// allow, and where a source set one that the cluster does not name: older members have no equal of
/// it. A default that the cluster does not name stays.
Result<Config> adopt_cluster_settings(const Config& config,
                                      std::span<const ClusterSetting> cluster);

}  // namespace nexar
