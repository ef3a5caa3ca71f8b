#include "bench/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/quantity.hpp"
#include "base/try.hpp"
#include "collective.hpp"
#include "compute/reduce.hpp"

namespace nexar::bench {

namespace {

using schedule::Collective;
using Kind = Subject::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 3> kMessages{
    {{Kind::latency, "latency"}, {Kind::bandwidth, "bandwidth"}, {Kind::exchange, "exchange"}}};

// The check of the data supports plain numbers only, neither complex nor located values.
constexpr std::array kTypes{DType::i8,  DType::u8,   DType::i16, DType::u16,
                            DType::i32, DType::u32,  DType::i64, DType::u64,
                            DType::f16, DType::bf16, DType::f32, DType::f64};
constexpr std::array kRedops{ReduceOp::sum,        ReduceOp::product,    ReduceOp::min,
                             ReduceOp::max,        ReduceOp::average,    ReduceOp::bit_and,
                             ReduceOp::bit_or,     ReduceOp::bit_xor,    ReduceOp::logical_and,
                             ReduceOp::logical_or, ReduceOp::logical_xor};

Result<Subject> subject_named(std::string_view text) {
    if (const auto operation = operation_named(text)) return Subject{.operation = *operation};
    for (const auto& [kind, its_name] : kMessages) {
        if (its_name == text) return Subject{.kind = kind};
    }
    return not_allowed("operation", text, subject_names());
}

template <class Values>
Result<typename Values::value_type> named(const Values& values, std::string_view what,
                                          std::string_view text) {
    std::string names;
    for (const auto value : values) {
        if (name(value) == text) return value;
        names += (names.empty() ? "" : ", ") + std::string(name(value));
    }
    return not_allowed(what, text, names);
}

/// Translates names that users know from other benchmarks.
std::string_view known_as(std::string_view operator_name) {
    if (operator_name == "prod") return "product";
    if (operator_name == "avg") return "average";
    return operator_name;
}

Result<std::vector<std::uint64_t>> listed_sizes(const std::string& text) {
    std::vector<std::uint64_t> sizes;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        NEXAR_TRY_VALUE(size, parse_size(word));
        sizes.push_back(size);
    }
    if (sizes.empty())
        return Error(Errc::invalid_argument, "--sizes is empty; give at least one size");
    return sizes;
}

Result<std::vector<std::uint64_t>> sizes_of(const Question& question) {
    if (!question.sizes.empty()) return listed_sizes(question.sizes);
    NEXAR_TRY_VALUE(smallest, parse_size(question.smallest));
    NEXAR_TRY_VALUE(largest, parse_size(question.largest));
    if (smallest == 0 || smallest > largest) {
        return Error(Errc::invalid_argument,
                     fmt::format("-b must be above 0 and at most -e; got -b {} and -e {}",
                                 question.smallest, question.largest));
    }
    if (question.factor < 2) {
        return not_allowed("factor", std::to_string(question.factor), "2 and above");
    }
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t size = smallest; size <= largest; size *= question.factor) {
        sizes.push_back(size);
        if (size > largest / question.factor) break;  // the next size would exceed the largest
    }
    return sizes;
}

Result<Format> format_of(const Question& question) {
    if (question.format == "table") return Format::table;
    if (question.format == "osu") return Format::osu;
    return not_allowed("format", question.format, "table, osu");
}

Result<void> check_choices(const Question& question, const Plan& plan) {
    if (question.check != 0 && question.check != 1) {
        return not_allowed("value of -c", std::to_string(question.check), "0, 1");
    }
    if (question.iterations == 0 && !question.seconds) {
        return Error(Errc::invalid_argument, "--iters 0 needs a time limit, such as --seconds 1");
    }
    if (question.seconds && !(*question.seconds > 0)) {
        return not_allowed("time limit", std::to_string(*question.seconds), "above 0");
    }
    if (!plan.subject.reduces()) return {};
    const bool scans =
        plan.subject.is(Collective::scan) || plan.subject.is(Collective::exclusive_scan);
    if (scans && plan.redop == ReduceOp::average) {
        return Error(Errc::invalid_argument,
                     "a scan cannot compute averages; choose another operator with -o");
    }
    const auto reducer = compute::reducer_for(plan.dtype, plan.redop);
    if (!reducer) return Error(Errc::invalid_argument, reducer.error().cause());
    return {};
}

}  // namespace

std::string_view Subject::name() const noexcept {
    if (kind == Kind::collective) return schedule::name(operation);
    return std::ranges::find(kMessages, kind, &std::pair<Kind, std::string_view>::first)->second;
}

std::string subject_names() {
    std::string names = operation_names();
    for (const auto& one : kMessages) names += ", " + std::string(one.second);
    return names;
}

Result<Plan> understood(const Question& question) {
    Plan plan;
    NEXAR_TRY_VALUE(subject, subject_named(question.subject));
    NEXAR_TRY_VALUE(sizes, sizes_of(question));
    NEXAR_TRY_VALUE(dtype, named(kTypes, "element type", question.dtype));
    NEXAR_TRY_VALUE(redop, named(kRedops, "operator", known_as(question.redop)));
    NEXAR_TRY_VALUE(format, format_of(question));
    plan.subject = subject;
    plan.sizes = subject.is(Collective::barrier) ? std::vector<std::uint64_t>{0} : sizes;
    plan.iterations = question.iterations;
    plan.warmup = question.warmup;
    plan.seconds = question.seconds;
    plan.dtype = dtype;
    plan.redop = redop;
    plan.root = question.root;
    plan.check = question.check == 1;
    plan.format = format;
    plan.json_path = question.json_path;
    if (question.memory != "private" && question.memory != "shared") {
        return not_allowed("kind of memory", question.memory, "private, shared");
    }
    plan.shared = question.memory == "shared";
    NEXAR_TRY(check_choices(question, plan));
    return plan;
}

Result<void> fits(const Plan& plan, std::uint32_t world) {
    if (plan.subject.kind != Kind::collective && world < 2) {
        return Error(Errc::invalid_argument,
                     fmt::format("{} measures messages between two ranks; give -n 2 or more",
                                 plan.subject.name()));
    }
    if (plan.subject.rooted() && plan.root >= world) {
        return not_allowed("rank in this world", std::to_string(plan.root),
                           fmt::format("0 to {}", world - 1));
    }
    return {};
}

}  // namespace nexar::bench
