#include "base/config_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.hpp"

namespace nexar {

namespace {

bool is_cluster(const Config::Entry& entry) noexcept {
    return entry.setting->scope == SettingScope::cluster;
}

/// True if this node set the value explicitly, so that the cluster must not override it silently.
bool is_own(const Config::Entry& entry) noexcept {
    return entry.origin.kind != OriginKind::fallback && entry.origin.kind != OriginKind::cluster;
}

class Adoption {
public:
    explicit Adoption(const Config& config) : config_(config) {}

    void offer(const ClusterSetting& offered) {
        const auto found = std::ranges::find_if(config_.entries(), [&](const Config::Entry& entry) {
            return is_cluster(entry) && entry.setting->name == offered.name;
        });
        if (found == config_.entries().end()) {
            return refuse(
                "{}: the cluster sets it ({}), but this version of nexar does not know the setting",
                in_quotes(offered.name), printable(offered.origin));
        }
        const Config::Entry& own = *found;
        const std::string_view name = own.setting->name;
        if (named(own)) return refuse("{}: the cluster sent it twice", name);
        named_.push_back(own.setting);

        auto value = read_value(*own.setting, TextValue{offered.value});
        if (!value) {
            return refuse("{} (cluster, {}): {}", name, printable(offered.origin),
                          value.error().cause());
        }
        if (is_own(own) && own.value != *value) {
            return refuse("{}: this node has {} ({}), the cluster has {} ({}); they must be equal",
                          name, in_quotes(to_text(own.value)), to_text(own.origin),
                          in_quotes(to_text(*value)), printable(offered.origin));
        }
        if (!is_own(own)) {
            adopted_.push_back({own.setting, *std::move(value), {OriginKind::cluster, ""}});
        }
    }

    Result<Config> finish() {
        for (const Config::Entry& own : config_.entries()) {
            if (!is_cluster(own) || !is_own(own) || named(own)) continue;
            refuse("{}: this node has {} ({}), but the cluster does not know the setting",
                   own.setting->name, in_quotes(to_text(own.value)), to_text(own.origin));
        }
        if (!problems_.empty()) return config_error(problems_);
        return config_.with(adopted_);
    }

private:
    bool named(const Config::Entry& entry) const noexcept {
        return std::ranges::find(named_, entry.setting) != named_.end();
    }

    template <class... Args>
    void refuse(fmt::format_string<Args...> format, Args&&... args) {
        problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
    }

    const Config& config_;
    std::vector<const Setting*> named_;
    std::vector<Config::Entry> adopted_;
    std::vector<std::string> problems_;
};

}  // namespace

std::vector<ClusterSetting> cluster_settings(const Config& config) {
    std::vector<ClusterSetting> settings;
    for (const Config::Entry& entry : config.entries()) {
        if (!is_cluster(entry)) continue;
        settings.push_back({.name = std::string(entry.setting->name),
                            .value = to_text(entry.value),
                            .origin = to_text(entry.origin)});
    }
    return settings;
}

Result<Config> adopt_cluster_settings(const Config& config,
                                      std::span<const ClusterSetting> cluster) {
    Adoption adoption(config);
    for (const ClusterSetting& offered : cluster) adoption.offer(offered);
    return adoption.finish();
}

}  // namespace nexar
