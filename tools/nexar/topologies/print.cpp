// The output of `nexar sim topologies`.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "collective.hpp"
#include "routing/relay.hpp"
#include "text_table.hpp"
#include "topologies/compare.hpp"

namespace nexar {

namespace {

using Row = std::vector<std::string>;

/// The forecasts of one world.
using World = std::span<const TopologyForecast>;

std::string graph_table(World world) {
    std::vector<Row> rows{{"topology", "connections", "per member", "diameter", "mean hops",
                           "relay load, all to all"}};
    for (const TopologyForecast& one : world) {
        rows.push_back({one.topology.text(), std::to_string(one.connections),
                        std::to_string(one.most_connections), std::to_string(one.diameter),
                        fmt::format("{:.2f}", one.mean_hops),
                        fmt::format("{:.1f}", one.uniform_load)});
    }
    return aligned(rows);
}

std::string time_in(const CollectiveForecast& cell) {
    return cell.algorithm.empty() ? "-" : as_time(cell.seconds);
}

std::string algorithm_in(const CollectiveForecast& cell) {
    if (cell.algorithm.empty()) return "-";
    if (!cell.relay_load) return fmt::format("{} ?", cell.algorithm);
    if (*cell.relay_load == 0) return fmt::format("{} 0", cell.algorithm);
    return fmt::format("{} {:.1f}", cell.algorithm, *cell.relay_load);
}

/// A row for each collective and size, a column for each topology.
template <class Text>
std::string collective_table(World world, std::string_view title, const Text& text) {
    std::vector<Row> rows{{std::string(title), "size"}};
    for (const TopologyForecast& one : world) rows[0].push_back(one.topology.text());
    for (std::size_t i = 0; i < world.front().collectives.size(); ++i) {
        const CollectiveForecast& first = world.front().collectives[i];
        const bool barrier = first.operation == schedule::Collective::barrier;
        rows.push_back({std::string(schedule::name(first.operation)),
                        barrier ? "-" : format_size(first.bytes)});
        for (const TopologyForecast& one : world) {
            rows.back().push_back(text(one.collectives[i]));
        }
    }
    return aligned(rows);
}

/// Calls `each` for the forecasts of every world.
template <class Each>
void for_worlds(const std::vector<TopologyForecast>& all, const Each& each) {
    for (std::size_t begin = 0; begin < all.size();) {
        std::size_t end = begin;
        while (end < all.size() && all[end].members == all[begin].members) ++end;
        each(std::span(all).subspan(begin, end - begin));
        begin = end;
    }
}

}  // namespace

std::string as_tables(const std::vector<TopologyForecast>& all) {
    std::string text;
    bool uncounted = false;
    for_worlds(all, [&](World world) {
        text += fmt::format("{}{} members\n\n", text.empty() ? "" : "\n", world.front().members);
        text += graph_table(world) + "\n";
        text += collective_table(world, "predicted time", time_in) + "\n";
        text += collective_table(world, "algorithm, relay load", algorithm_in);
        for (const TopologyForecast& one : world) {
            for (const CollectiveForecast& cell : one.collectives) {
                uncounted = uncounted || (!cell.algorithm.empty() && !cell.relay_load);
            }
        }
    });
    text +=
        "\nrelay load: bytes that the busiest relay forwards for each byte that a member sends on "
        "average\n";
    for (const TopologyForecast& one : all) {
        if (one.diameter <= routing::kDefaultHops) continue;
        text += fmt::format(
            "{} with {} members: some ways have {} hops, but relays drop packets after {}\n",
            one.topology.text(), one.members, one.diameter, routing::kDefaultHops);
    }
    if (uncounted) text += "?: not counted, because the schedules have too many steps\n";
    return text;
}

std::string as_json(const std::vector<TopologyForecast>& all) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const TopologyForecast& one : all) {
        nlohmann::ordered_json collectives = nlohmann::ordered_json::array();
        for (const CollectiveForecast& cell : one.collectives) {
            nlohmann::ordered_json entry;
            entry["operation"] = schedule::name(cell.operation);
            entry["bytes"] = cell.bytes;
            if (!cell.algorithm.empty()) {
                entry["algorithm"] = cell.algorithm;
                entry["seconds"] = cell.seconds;
            }
            if (cell.relay_load) entry["relay_load"] = *cell.relay_load;
            collectives.push_back(std::move(entry));
        }
        list.push_back({{"topology", one.topology.text()},
                        {"members", one.members},
                        {"connections", one.connections},
                        {"most_connections", one.most_connections},
                        {"diameter", one.diameter},
                        {"mean_hops", one.mean_hops},
                        {"all_to_all_relay_load", one.uniform_load},
                        {"collectives", std::move(collectives)}});
    }
    return list.dump(2) + "\n";
}

}  // namespace nexar
