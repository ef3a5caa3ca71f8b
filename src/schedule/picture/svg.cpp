#include "schedule/picture/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/picture/trace.hpp"

namespace nexar::schedule {

namespace {

// All lengths are whole pixels: equal pictures are equal bytes.
constexpr int kMargin = 16;
constexpr int kRoundLabel = 76;  // width of the column that numbers the rounds
constexpr int kColumn = 168;     // between the lines of two ranks
constexpr int kHeader = 128;     // title, names of ranks, what they hold at the start
constexpr int kTrack = 34;       // arrows that would cross are drawn on different tracks
constexpr int kFall = 14;        // an arrow ends this much below its beginning
constexpr int kPadding = 14;
constexpr int kCellHeight = 16;
constexpr int kMostCellWidth = 20;
constexpr int kMostCellsWidth = 136;
constexpr std::uint32_t kMostCells = 16;
constexpr int kLetter = 7;  // about the width of a letter on a label
constexpr int kFoldRadius = 8;
constexpr int kLegendLine = 24;
constexpr int kLegendWidth = 700;  // of the legend on one line
constexpr int kLeastWidth = 480;   // of the longest caption

constexpr std::array<std::string_view, 8> kColours{"#2563c9", "#c2570c", "#23794a", "#7a3fc0",
                                                   "#b4233c", "#0b7285", "#7a5a1e", "#ad2f85"};
constexpr std::string_view kNoColour = "#475467";

constexpr std::string_view kStyle =
    "<style>"
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2937;"
    "text-anchor:middle}"
    ".t{font-size:17px;font-weight:600}"
    ".s{fill:#667085}"
    ".l{text-anchor:start}"
    ".k{font-size:12px;fill:#fff}"
    ".r{font-weight:600}"
    ".n text{font-size:11px}"
    ".a{fill:none;stroke-width:1.8}"
    "</style>\n";

/// The colour "#rrggbb" at this strength, on white.
std::string tint(std::string_view colour, std::uint32_t percent) {
    std::string mixed = "#";
    for (std::size_t i = 1; i < colour.size(); i += 2) {
        std::uint32_t channel = 0;
        std::from_chars(colour.data() + i, colour.data() + i + 2, channel, 16);
        mixed += fmt::format("{:02x}", 255 - (255 - channel) * percent / 100);
    }
    return mixed;
}

/// "0-2, 5"
std::string list_of(const std::vector<std::uint32_t>& numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        if (!text.empty()) text += ", ";
        text += last == i ? fmt::format("{}", numbers[i])
                          : fmt::format("{}-{}", numbers[i], numbers[last]);
        i = last + 1;
    }
    return text;
}

class SvgPicture {
public:
    SvgPicture(const Algorithm& algorithm, std::uint32_t world, std::uint32_t root,
               const Links& links)
        : algorithm_(algorithm), trace_(trace(algorithm, world, root, links)) {}

    std::string draw() {
        place_arrows();
        y_ = kHeader;
        cells(0, kHeader - kCellHeight - 8);
        for (std::uint32_t round = 1; round <= trace_.rounds; ++round) draw_round(round);
        const int bottom = y_;
        legend();
        const int height = y_;
        std::string page = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
            "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n{3}"
            "<rect width=\"{0}\" height=\"{1}\" rx=\"8\" fill=\"#fff\"/>\n",
            width(), height, title(), kStyle);
        page += bands_;
        page += fmt::format("<text class=\"l t\" x=\"{}\" y=\"34\">{}</text>\n", kMargin, title());
        page +=
            fmt::format("<text class=\"l s\" x=\"{}\" y=\"56\">{}</text>\n", kMargin, caption());
        page += lifelines(bottom);
        return page + cells_in_svg() + arrows_ + legend_ + "</svg>\n";
    }

private:
    int x(std::uint32_t rank) const {
        return kMargin + kRoundLabel + kColumn / 2 + kColumn * static_cast<int>(rank);
    }

    int width() const {
        const int columns = kRoundLabel + kColumn * static_cast<int>(trace_.world);
        return std::max(kLeastWidth, 2 * kMargin + columns);
    }

    bool has_cells() const {
        return algorithm_.operation != Collective::barrier && trace_.pieces <= kMostCells;
    }

    std::string title() const {
        return fmt::format("{} by {}, {} rank{}", name(algorithm_.operation), algorithm_.name,
                           trace_.world, trace_.world == 1 ? "" : "s");
    }

    std::string_view piece_word() const {
        return trace_.pieces == trace_.world || algorithm_.operation == Collective::all_to_all
                   ? "chunk"
                   : "part";
    }

    std::string caption() const {
        if (algorithm_.operation == Collective::barrier)
            return "Time runs downwards. Messages carry no data.";
        if (trace_.pieces == 1) return "Time runs downwards. A message carries a whole vector.";
        if (algorithm_.operation == Collective::all_to_all)
            return "Time runs downwards. Chunk 0:1 goes from rank 0 to rank 1.";
        return fmt::format("Time runs downwards. The vector is divided into {} {}s.", trace_.pieces,
                           piece_word());
    }

    std::string label_of(const TracedMessage& message) const {
        if (message.pieces.empty()) return "";
        if (trace_.pieces == 1) {
            if (!reduces(algorithm_.operation)) return "vector";
            std::vector<std::uint32_t> ranks;
            for (std::uint32_t rank = 0; rank < trace_.world; ++rank)
                if ((message.contributors >> rank & 1U) != 0) ranks.push_back(rank);
            return fmt::format("{} {}", ranks.size() == 1 ? "vector of" : "fold of",
                               list_of(ranks));
        }
        const std::string_view plural = message.pieces.size() == 1 ? "" : "s";
        if (algorithm_.operation == Collective::all_to_all) {
            if (message.pieces.size() > 1) return fmt::format("{} chunks", message.pieces.size());
            return fmt::format("chunk {}:{}", message.pieces[0] / trace_.world,
                               message.pieces[0] % trace_.world);
        }
        if (message.pieces.size() == trace_.pieces) return fmt::format("all {}s", piece_word());
        return fmt::format("{}{} {}", piece_word(), plural, list_of(message.pieces));
    }

    std::string_view colour_of(const TracedMessage& message) const {
        if (message.pieces.size() != 1) return kNoColour;
        return base_colour(message.pieces[0]);
    }

    /// One colour per piece; in all_to_all one per sender.
    std::string_view base_colour(std::uint32_t piece) const {
        if (algorithm_.operation == Collective::all_to_all) piece /= trace_.world;
        return kColours.at(piece % kColours.size());
    }

    /// Gives each arrow of a round the first track on which it meets no other.
    void place_arrows() {
        tracks_.resize(std::size_t{trace_.rounds} + 1);
        for (const TracedMessage& message : trace_.messages) {
            auto& tracks = tracks_[message.round];
            const auto free = std::ranges::find_if(tracks, [&](const auto& track) {
                return std::ranges::none_of(
                    track, [&](const TracedMessage* other) { return meet(message, *other); });
            });
            if (free == tracks.end()) {
                tracks.push_back({&message});
            } else {
                free->push_back(&message);
            }
        }
    }

    static bool meet(const TracedMessage& a, const TracedMessage& b) {
        const auto [a_low, a_high] = std::minmax(a.from, a.to);
        const auto [b_low, b_high] = std::minmax(b.from, b.to);
        // Two that begin, or end, on the line that they share would touch there.
        const bool touch = a.from == b.from || a.to == b.to;
        return touch || (a_low < b_high && b_low < a_high);
    }

    void draw_round(std::uint32_t round) {
        const int top = y_;
        y_ += kPadding;
        for (const auto& track : tracks_[round]) {
            for (const TracedMessage* message : track) draw_arrow(*message, y_);
            y_ += kTrack;
        }
        if (has_cells()) {
            cells(round, y_);
            y_ += kCellHeight;
        }
        y_ += kPadding - 4;
        const int columns = kRoundLabel + kColumn * static_cast<int>(trace_.world);
        if (round % 2 == 1) {
            bands_ += fmt::format(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#f3f5f8\"/>\n",
                kMargin, top, columns, y_ - top);
        }
        bands_ += fmt::format("<text class=\"l s\" x=\"{}\" y=\"{}\">round {}</text>\n",
                              kMargin + 12, (top + y_) / 2 + 4, round);
    }

    void draw_arrow(const TracedMessage& message, int y) {
        const bool right = message.to > message.from;
        const int direction = right ? 1 : -1;
        const int begin = x(message.from);
        const int end = x(message.to) - direction * (message.folded ? kFoldRadius : 1);
        const std::string_view colour = colour_of(message);
        arrows_ += fmt::format(
            "<g stroke=\"{0}\" fill=\"{0}\"><circle cx=\"{1}\" cy=\"{2}\" r=\"3\"/>"
            "<path class=\"a\" d=\"M{1} {2}L{3} {4}\"/><path d=\"M{5} {4}l{6} -4v8z\"/></g>",
            colour, begin, y, end - direction * 6, y + kFall, end, -direction * 9);
        if (message.folded) {
            arrows_ += fold_mark(x(message.to), y + kFall);
        }
        const std::string label = label_of(message);
        if (!label.empty()) {
            const int middle = begin + direction * kColumn / 2;
            const auto span = static_cast<int>(std::max(message.from, message.to) -
                                               std::min(message.from, message.to));
            const int middle_y = y + kFall / (2 * span);
            const int half = (static_cast<int>(label.size()) * kLetter + 14) / 2;
            arrows_ += fmt::format(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" rx=\"9\" fill=\"{}\"/>"
                "<text class=\"k\" x=\"{}\" y=\"{}\">{}</text>",
                middle - half, middle_y - 9, 2 * half, colour, middle, middle_y + 4, label);
        }
        arrows_ += '\n';
    }

    static std::string fold_mark(int x, int y) {
        return fmt::format(
            "<circle cx=\"{0}\" cy=\"{1}\" r=\"{2}\" fill=\"#fff\" stroke=\"#1f2937\" "
            "stroke-width=\"1.6\"/><path d=\"M{3} {1}h8M{0} {4}v8\" stroke=\"#1f2937\" "
            "stroke-width=\"1.6\"/>",
            x, y, kFoldRadius, x - 4, y - 4);
    }

    int cell_width() const {
        if (trace_.pieces == 1) return 2 * kMostCellWidth;
        return std::min(kMostCellWidth, kMostCellsWidth / static_cast<int>(trace_.pieces));
    }

    /// Collects cells of the same colour in one path: otherwise cells would be most of the file.
    void cells(std::uint32_t round, int y) {
        if (!has_cells()) return;
        const int wide = cell_width();
        for (std::uint32_t rank = 0; rank < trace_.world; ++rank) {
            int left = x(rank) - wide * static_cast<int>(trace_.pieces) / 2;
            for (std::uint32_t piece = 0; piece < trace_.pieces; ++piece, left += wide) {
                const std::uint32_t held = trace_.held[round][rank][piece];
                cells_[cell_colour(piece, held)] +=
                    fmt::format("M{} {}h{}v{}h-{}z", left, y, wide, kCellHeight, wide);
                if (held == 0 || !reduces(algorithm_.operation)) continue;
                counts_ +=
                    fmt::format(R"(<text x="{}" y="{}">{}</text>)", left + wide / 2, y + 12, held);
            }
        }
        if (reduces(algorithm_.operation)) counts_ += '\n';
    }

    /// White for a piece that the rank does not hold; the stronger, the more ranks contributed.
    std::string cell_colour(std::uint32_t piece, std::uint32_t held) const {
        const std::uint32_t all = reduces(algorithm_.operation) ? trace_.world : 1;
        return tint(base_colour(piece), 70 * held / all);
    }

    std::string cells_in_svg() const {
        std::string svg = "<g stroke=\"#98a2b3\">\n";
        for (const auto& [colour, path] : cells_)
            svg += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", colour, path);
        return svg + "</g>\n<g class=\"n\">\n" + counts_ + "</g>\n";
    }

    std::string lifelines(int bottom) const {
        std::string path;
        std::string names;
        for (std::uint32_t rank = 0; rank < trace_.world; ++rank) {
            path += fmt::format("M{} 98V{}", x(rank), bottom);
            names +=
                fmt::format("<text x=\"{}\" y=\"90\" class=\"r\">rank {}</text>\n", x(rank), rank);
        }
        return fmt::format("<path d=\"{}\" stroke=\"#98a2b3\"/>\n", path) + names;
    }

    void legend() {
        int left = kMargin + 12;
        int y = y_ + kLegendLine;
        const auto say = [&](std::string_view text) {
            legend_ +=
                fmt::format("<text class=\"l s\" x=\"{}\" y=\"{}\">{}</text>\n", left, y + 4, text);
        };
        if (std::ranges::any_of(trace_.messages, &TracedMessage::folded)) {
            legend_ += fold_mark(left + kFoldRadius, y);
            left += 2 * kFoldRadius + 8;
            say("the receiver folds the message into its own data");
            left += 330;
            if (width() < kLegendWidth) {
                left = kMargin + 12;
                y += kLegendLine;
            }
        }
        y_ = y + kLegendLine;
        if (!has_cells()) return;
        const std::uint32_t example =
            reduces(algorithm_.operation) ? std::min(2U, trace_.world) : 1;
        legend_ += fmt::format("<path d=\"M{} {}h{}v{}h-{}z\" fill=\"{}\" stroke=\"#98a2b3\"/>\n",
                               left, y - 8, kMostCellWidth, kCellHeight, kMostCellWidth,
                               cell_colour(0, example));
        const int middle = left + kMostCellWidth / 2;
        left += kMostCellWidth + 8;
        const std::string_view what = trace_.pieces == 1 ? "vector" : piece_word();
        if (reduces(algorithm_.operation)) {
            legend_ += fmt::format(R"(<g class="n"><text x="{}" y="{}">{}</text></g>)", middle,
                                   y + 4, example);
            say(fmt::format("{} that contains the data of {} rank{}", what, example,
                            example == 1 ? "" : "s"));
        } else {
            say(fmt::format("{} that the rank holds", what));
        }
    }

    const Algorithm& algorithm_;
    Trace trace_;
    std::vector<std::vector<std::vector<const TracedMessage*>>> tracks_;  // per round
    int y_ = 0;  // where the next round begins
    std::string bands_;
    std::string arrows_;
    std::map<std::string, std::string> cells_;  // by colour: path
    std::string counts_;
    std::string legend_;
};

}  // namespace

std::string svg_picture(const Algorithm& algorithm, std::uint32_t world, std::uint32_t root,
                        const Links& links) {
    return SvgPicture(algorithm, world, root, links).draw();
}

}  // namespace nexar::schedule
