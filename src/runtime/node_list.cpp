#include "runtime/node_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/printable.hpp"
#include "base/try.hpp"

namespace nexar {

namespace {

constexpr std::size_t kMaxDigits = 18;  // fits 64 bits

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_host_character(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
}

/// Reads a text from front to back.
class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    bool at_end() const { return rest_.empty(); }
    bool next_is(char c) const { return rest_.starts_with(c); }

    bool take(char c) {
        if (!next_is(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }

    template <class Predicate>
    std::string_view take_while(Predicate wanted) {
        const auto end = std::ranges::find_if_not(rest_, wanted);
        const std::string_view taken(rest_.begin(), end);
        rest_.remove_prefix(taken.size());
        return taken;
    }

private:
    std::string_view rest_;
};

Error malformed(std::string_view what, std::string_view text, std::string_view why) {
    return {Errc::malformed, fmt::format("{} {} is not valid: {}", what, in_quotes(text), why)};
}

std::uint64_t number_of(std::string_view digits) {
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

class NodeListParser {
public:
    explicit NodeListParser(std::string_view text) : text_(text), scanner_(text) {}

    Result<NodeList> parse() {
        if (text_.size() > NodeList::kMaxBytes) return bad("it is longer than 64 KiB");
        do {
            NEXAR_TRY(parse_name());
        } while (scanner_.take(','));
        if (!scanner_.at_end()) return bad("it has a character that is not allowed in a host name");
        return list_;
    }

private:
    Result<void> parse_name() {
        std::string first;
        std::uint64_t hosts = 1;
        while (true) {
            first += scanner_.take_while(is_host_character);
            if (!scanner_.take('[')) break;
            NEXAR_TRY_VALUE(numbers, parse_bracket(first));
            hosts *= numbers;  // cannot overflow: both are at most kMaxHosts
            if (hosts > NodeList::kMaxHosts) return too_many();
        }
        if (first.empty()) return bad("it has a host without a name");
        if (first.size() > NodeList::kMaxHostBytes) return bad("a name has more than 253 bytes");
        if (hosts + list_.count > NodeList::kMaxHosts) return too_many();
        if (list_.count == 0) list_.first = std::move(first);
        list_.count += static_cast<std::uint32_t>(hosts);
        return {};
    }

    /// Parses from after `[` through `]` and returns the number of numbers. Appends the first one
    /// to `first`.
    Result<std::uint64_t> parse_bracket(std::string& first) {
        std::uint64_t numbers = 0;
        do {
            const std::string_view low = scanner_.take_while(is_digit);
            const bool is_range = scanner_.take('-');
            const std::string_view high = is_range ? scanner_.take_while(is_digit) : low;
            if (low.empty() || high.empty()) return bad("brackets must contain numbers and ranges");
            if (low.size() > kMaxDigits || high.size() > kMaxDigits) {
                return bad("a number has too many digits");
            }
            if (number_of(low) > number_of(high)) return bad("it has a range that runs backwards");
            if (numbers == 0) first += low;
            const std::uint64_t more = number_of(high) - number_of(low) + 1;
            if (more > NodeList::kMaxHosts) return too_many();
            numbers += more;
            if (numbers > NodeList::kMaxHosts) return too_many();
        } while (scanner_.take(','));
        if (!scanner_.take(']')) return bad("it has a bracket that is not closed");
        return numbers;
    }

    Error bad(std::string_view why) const { return malformed("the list of hosts", text_, why); }
    Error too_many() const {
        return bad(fmt::format("it has more than {} hosts", NodeList::kMaxHosts));
    }

    std::string_view text_;
    Scanner scanner_;
    NodeList list_;
};

}  // namespace

Result<NodeList> parse_node_list(std::string_view text) {
    return NodeListParser(text).parse();
}

Result<std::uint32_t> tasks_on_node(std::string_view text, std::uint32_t node) {
    const auto bad = [&](std::string_view why) {
        return malformed("the number of tasks per node", text, why);
    };
    if (text.size() > NodeList::kMaxBytes) return bad("it is longer than 64 KiB");
    Scanner scanner(text);
    std::uint64_t nodes = 0;
    std::uint64_t found = 0;
    do {
        const std::string_view tasks = scanner.take_while(is_digit);
        std::string_view times = "1";
        if (scanner.take('(')) {
            if (!scanner.take('x')) return bad("a repetition must look like 2(x3)");
            times = scanner.take_while(is_digit);
            if (!scanner.take(')')) return bad("it has a bracket that is not closed");
        }
        if (tasks.empty() || times.empty()) return bad("it lacks a number");
        if (tasks.size() > 7 || times.size() > 7) return bad("a number has too many digits");
        const bool here = nodes <= node && node < nodes + number_of(times);
        if (here) found = number_of(tasks);
        nodes += number_of(times);  // at most 32768 times 10 million
    } while (scanner.take(','));
    if (!scanner.at_end()) return bad("it has an unexpected character");
    if (node >= nodes) return bad(fmt::format("it has no entry for node {}", node));
    return static_cast<std::uint32_t>(found);
}

}  // namespace nexar
