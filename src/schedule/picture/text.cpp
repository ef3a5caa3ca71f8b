#include "schedule/picture/text.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "schedule/picture/rounds.hpp"

namespace nexar::schedule {

namespace {

constexpr std::size_t kSmallWorld = 8;
constexpr std::size_t kMostLines = 12;

std::string line_of(const std::map<std::uint64_t, std::string>& by_size) {
    std::string line;
    for (const auto& [bytes, arrows] : by_size) {
        line += fmt::format("{}{} each:{}", line.empty() ? "" : "; ", format_size(bytes), arrows);
    }
    return line;
}

}  // namespace

std::string text_picture(std::span<const Schedule> ranks, std::uint64_t element_bytes) {
    const Rounds rounds(ranks);
    const bool all = ranks.size() <= kSmallWorld;
    std::map<std::uint32_t, std::map<std::uint64_t, std::string>> lines;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        for (std::size_t i = 0; i < ranks[rank].steps.size(); ++i) {
            const Step& step = ranks[rank].steps[i];
            const bool drawn = all || rank == 0 || step.peer == 0;
            if (step.kind != Kind::send || !drawn) continue;
            lines[rounds.of(rank, i)][step.count() * element_bytes] +=
                fmt::format("  {} -> {}", rank, step.peer);
        }
    }
    // Rounds with the same messages share a line.
    std::vector<std::pair<std::string, std::string>> rows;  // round numbers, messages
    std::uint32_t first = 0;
    for (const auto& [round, by_size] : lines) {
        const std::string line = line_of(by_size);
        const bool alike = !rows.empty() && rows.back().second == line;
        if (!alike) first = round;
        const std::string which =
            first == round ? fmt::format("{}", round) : fmt::format("{}-{}", first, round);
        if (alike)
            rows.back().first = which;
        else
            rows.emplace_back(which, line);
    }
    std::string text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool shown = rows.size() <= kMostLines || i + 2 < kMostLines || i + 2 > rows.size();
        if (shown) text += fmt::format("  round {:<5}  {}\n", rows[i].first, rows[i].second);
        if (!shown && i + 2 == kMostLines) text += "  ...\n";
    }
    return text;
}

}  // namespace nexar::schedule
