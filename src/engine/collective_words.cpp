#include "engine/collective_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/printable.hpp"

namespace nexar::engine {

namespace {

/// The parts of a description before and after its bar; see CollectiveRunner::description_of.
struct Halves {
    std::string_view call;
    std::string_view way;
};
Halves halves(std::string_view description) {
    const std::size_t bar = description.find('|');
    if (bar == std::string_view::npos) return {description, {}};
    return {description.substr(0, bar), description.substr(bar + 1)};
}

}  // namespace

std::string call_text(const CollectiveTerms& terms) {
    if (terms.agrees_on_memory) return "set-up of shared memory for collectives";
    std::string text(schedule::name(terms.what));
    if (terms.has_counts || terms.exchanges_counts) text += "_v";
    if (terms.exchanges_counts) text += ", which exchanges counts first,";
    if (terms.what != schedule::Collective::barrier) {
        text += fmt::format(" {}", name(terms.dtype));
        if (terms.dtype == DType::opaque) text += fmt::format("[{} B]", terms.element_bytes);
        if (knows_all_counts(terms)) text += fmt::format(" x {}", terms.count);
    }
    if (!terms.operator_name.empty()) text += fmt::format(" {}", terms.operator_name);
    if (schedule::rooted(terms.what)) text += fmt::format(", root {}", terms.root);
    return text;
}

std::string difference(std::uint64_t number, const Called& a, const Called& b) {
    const Halves x = halves(a.description);
    const Halves y = halves(b.description);
    if (x.call == y.call) {
        return fmt::format(
            "{} #{}: rank {} uses {}, rank {} uses {}; settings of collectives must be equal "
            "on all ranks",
            x.call.substr(0, x.call.find(' ')), number, a.rank.value(), x.way, b.rank.value(),
            y.way);
    }
    const std::string_view operation = x.call.substr(0, x.call.find(' '));
    const bool same = operation == y.call.substr(0, y.call.find(' ')) &&
                      operation.size() < std::min(x.call.size(), y.call.size());
    const std::size_t skip = same ? operation.size() + 1 : 0;
    return fmt::format("{} #{}: rank {} called {}; rank {} called {}",
                       same ? operation : "collective", number, a.rank.value(), x.call.substr(skip),
                       b.rank.value(), y.call.substr(skip));
}

wire::CollectiveAbort abort_of(const Context& context, std::uint64_t number, const Error& error) {
    return {.context = context.id,
            .operation = number,
            .code = error.code(),
            .rank = internal_rank(error.rank()).value_or(context.me),
            .gone = context.collectives.is_over(number),
            .text = printable(error.cause(), wire::kMaxReportTextBytes)};
}

}  // namespace nexar::engine
