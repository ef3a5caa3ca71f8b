#include "base/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/printable.hpp"
#include "base/try.hpp"

namespace {

/// Thrown when an assertion of the parser fails.
struct BrokenParser {};

[[noreturn]] void give_up() {
    throw BrokenParser();
}

}  // namespace

// The only file that includes toml++. It is used header-only, so that neither nexar nor a program
// that links it statically needs a toml++ library at run time. Its assertions stay enabled and
// throw: up to version 3.4 some malformed files trigger them ("[[[", toml++ pull request 301). A
// bad file must not end the process, nor cause undefined behaviour where a disabled assertion
// becomes an optimiser assumption.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) (static_cast<bool>(condition) ? static_cast<void>(0) : give_up())
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace nexar {

namespace {

/// The name of a type that no setting accepts.
std::string_view foreign_type(toml::node_type type) noexcept {
    switch (type) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "an array";
        case toml::node_type::date:
            return "a date";
        case toml::node_type::time:
            return "a time";
        default:
            return "a date and time";
    }
}

FileValue file_value(const toml::node& node) {
    if (const auto* text = node.as_string()) return {text->get()};
    if (const auto* boolean = node.as_boolean()) return {boolean->get()};
    if (const auto* integer = node.as_integer()) return {integer->get()};
    if (const auto* real = node.as_floating_point()) return {real->get()};
    return {ForeignValue{foreign_type(node.type())}};
}

Error not_toml(const ConfigFile& file, std::string_view place, std::string_view why) {
    return {Errc::bad_config, fmt::format("file {}{} is not valid TOML: {}", printable(file.path),
                                          place, printable(why))};
}

Result<toml::table> parse_toml(const ConfigFile& file) {
    try {
        toml::parse_result parsed = toml::parse(std::string_view(file.text));
        if (parsed) return std::move(parsed).table();
        const toml::source_position at = parsed.error().source().begin;
        return not_toml(file, fmt::format(":{}:{}", at.line, at.column),
                        parsed.error().description());
    } catch (const BrokenParser&) {
        return not_toml(file, "", "the parser gave up; look for misplaced brackets");
    }
}

}  // namespace

Result<std::vector<ConfigFileEntry>> parse_config_file(const ConfigFile& file) {
    NEXAR_TRY_VALUE(table, parse_toml(file));
    std::vector<ConfigFileEntry> entries;
    for (auto&& [key, node] : std::as_const(table)) {
        entries.push_back({.key = std::string(key.str()),
                           .line = key.source().begin.line,
                           .value = file_value(node)});
    }
    std::ranges::sort(entries, {}, [](const auto& e) { return std::tie(e.line, e.key); });
    return entries;
}

}  // namespace nexar
