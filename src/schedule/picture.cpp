#include "schedule/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "schedule/message_ends.hpp"

namespace nexar::schedule {

namespace {

constexpr std::size_t kSmallWorld = 8;
constexpr std::size_t kMostLines = 12;

/// How many messages, one after the other, come before the end of each step.
class Rounds {
public:
    explicit Rounds(std::span<const Schedule> ranks)
        : ranks_(ranks), ends_(match_messages(ranks)), rounds_(ranks.size()) {
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            rounds_[rank].resize(ranks[rank].steps.size());
        while (advance()) {
        }
    }

    std::uint32_t of(std::size_t rank, std::size_t step) const { return rounds_[rank][step]; }

private:
    std::uint32_t before(std::size_t rank, std::size_t step) const {
        std::uint32_t last = 0;
        for (const Dependency& dependency : ranks_[rank].dependencies_of(step))
            last = std::max(last, rounds_[rank][dependency.step]);
        return last;
    }

    /// One more pass over all steps; a schedule without circles needs as many as it has rounds.
    bool advance() {
        bool changed = false;
        for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
            for (std::size_t i = 0; i < ranks_[rank].steps.size(); ++i) {
                const Step& step = ranks_[rank].steps[i];
                std::uint32_t round = before(rank, i);
                if (is_message(step.kind)) ++round;
                if (receives(step.kind))
                    round = std::max(round, rounds_[step.peer][ends_.other[rank][i]]);
                changed |= round != rounds_[rank][i];
                rounds_[rank][i] = round;
            }
        }
        return changed && ++passes_ < kMostPasses;
    }

    static constexpr int kMostPasses = 4096;

    std::span<const Schedule> ranks_;
    MessageEnds ends_;
    std::vector<std::vector<std::uint32_t>> rounds_;
    int passes_ = 0;
};

std::string line_of(const std::map<std::uint64_t, std::string>& by_size) {
    std::string line;
    for (const auto& [bytes, arrows] : by_size) {
        line += fmt::format("{}{} each:{}", line.empty() ? "" : "; ", format_size(bytes), arrows);
    }
    return line;
}

}  // namespace

std::string picture(std::span<const Schedule> ranks, std::uint64_t element_bytes) {
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
    // Rounds that look alike stand in one line.
    std::vector<std::pair<std::string, std::string>> rows;  // which, and what
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
