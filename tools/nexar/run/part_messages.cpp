#include "run/part_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <utility>
#include <vector>

namespace nexar::run {

namespace {

constexpr std::string_view kMark = "\x1enexar-run ";
constexpr std::string_view kAlive = "alive";
constexpr std::string_view kSignal = "signal";
constexpr std::string_view kRestart = "restart";
constexpr std::string_view kSettle = "settle";
constexpr std::string_view kEnded = "ended";
constexpr std::string_view kFinished = "finished";
constexpr std::string_view kByCode = "code";
constexpr std::string_view kBySignal = "signal";
constexpr std::size_t kMostWords = 4;

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (!line.empty() && words.size() <= kMostWords) {
        const std::size_t end = std::min(line.find(' '), line.size());
        words.push_back(line.substr(0, end));
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return words;
}

template <class Number>
std::optional<Number> number_of(std::string_view text, Number most) {
    Number number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number > most) return {};
    if (std::cmp_less(number, 0)) return {};
    return number;
}

std::optional<FromPart> decode_ended(std::string_view rank_text, std::string_view how,
                                     std::string_view number_text) {
    const auto rank = number_of<std::uint32_t>(rank_text, 65535);
    const auto number = number_of<int>(number_text, 255);
    if (!rank || !number || (how != kByCode && how != kBySignal)) return {};
    return RankEnded{.rank = *rank, .how = {.by_signal = how == kBySignal, .number = *number}};
}

std::optional<ToPart> decode_restart(const std::vector<std::string_view>& words) {
    const auto rank = number_of<std::uint32_t>(words[1], 65535);
    const auto number = number_of<std::uint32_t>(words[2], 1'000'000);
    if (!rank || !number || *number == 0) return {};
    return Restart{.rank = *rank, .number = *number, .join = std::string(words[3])};
}

}  // namespace

std::string encode(const ToPart& message) {
    if (const auto* pass_on = std::get_if<PassOn>(&message)) {
        return fmt::format("{} {}\n", kSignal, pass_on->signal);
    }
    if (const auto* restart = std::get_if<Restart>(&message)) {
        return fmt::format("{} {} {} {}\n", kRestart, restart->rank, restart->number,
                           restart->join);
    }
    if (std::holds_alternative<Settle>(message)) return fmt::format("{}\n", kSettle);
    return fmt::format("{}\n", kAlive);
}

std::string encode(const FromPart& message) {
    if (const auto* ended = std::get_if<RankEnded>(&message)) {
        return fmt::format("{}{} {} {} {}\n", kMark, kEnded, ended->rank,
                           ended->how.by_signal ? kBySignal : kByCode, ended->how.number);
    }
    return fmt::format("{}{}\n", kMark,
                       std::holds_alternative<Finished>(message) ? kFinished : kAlive);
}

std::optional<ToPart> decode_to_part(std::string_view line) {
    const auto words = words_of(line);
    if (words.size() == 1 && words[0] == kAlive) return Alive{};
    if (words.size() == 1 && words[0] == kSettle) return Settle{};
    if (words.size() == 4 && words[0] == kRestart) return decode_restart(words);
    if (words.size() != 2 || words[0] != kSignal) return {};
    const auto signal = number_of<int>(words[1], SIGRTMAX);
    if (!signal || *signal == 0) return {};
    return PassOn{.signal = *signal};
}

std::optional<FromPart> decode_from_part(std::string_view line) {
    if (!line.starts_with(kMark)) return {};
    const auto words = words_of(line.substr(kMark.size()));
    if (words.size() == 1 && words[0] == kAlive) return Alive{};
    if (words.size() == 1 && words[0] == kFinished) return Finished{};
    if (words.size() == 4 && words[0] == kEnded) return decode_ended(words[1], words[2], words[3]);
    return {};
}

}  // namespace nexar::run
