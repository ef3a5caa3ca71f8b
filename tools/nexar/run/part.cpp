#include "run/part.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "run/hosts.hpp"

namespace nexar::run {

namespace {

/// The version of the Part and of the messages that follow it in both directions.
constexpr int kVersion = 4;

Error malformed() {
    return {Errc::malformed,
            "this host does not understand the part to run that the launcher sent; both hosts need "
            "the same version of nexar"};
}

bool is_text(const std::string& text) {
    return text.find('\0') == std::string::npos;
}

bool possible(const Part& part) {
    if (part.world == 0 || part.world > kMostRanks || part.count == 0 || part.count > part.world ||
        part.first_rank > part.world - part.count) {
        return false;
    }
    if (part.command.empty() || part.grace < Duration::zero()) return false;
    if (part.host_timeout <= Duration::zero() || part.host_timeout > kMaxHostTimeout) return false;
    if (part.on_failure > OnFailure::restart) return false;
    return std::ranges::all_of(part.command, is_text) &&
           std::ranges::all_of(part.environment, is_text) && is_text(part.directory) &&
           is_text(part.join);
}

/// JSON strings must be UTF-8; arguments and variables are arbitrary bytes.
nlohmann::json as_bytes(const std::string& text) {
    auto bytes = nlohmann::json::array();
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
}

std::string from_bytes(const nlohmann::json& bytes) {
    std::string text;
    for (const auto& byte : bytes) {
        text.push_back(static_cast<char>(byte.get<unsigned char>()));
    }
    return text;
}

nlohmann::json as_list(const std::vector<std::string>& texts) {
    auto list = nlohmann::json::array();
    for (const std::string& text : texts) list.push_back(as_bytes(text));
    return list;
}

std::vector<std::string> from_list(const nlohmann::json& list) {
    std::vector<std::string> texts;
    for (const auto& text : list) texts.push_back(from_bytes(text));
    return texts;
}

}  // namespace

std::string encode(const Part& part) {
    const nlohmann::json all = {{"version", kVersion},
                                {"join", as_bytes(part.join)},
                                {"world", part.world},
                                {"first_rank", part.first_rank},
                                {"count", part.count},
                                {"command", as_list(part.command)},
                                {"environment", as_list(part.environment)},
                                {"directory", as_bytes(part.directory)},
                                {"grace_ns", part.grace.count()},
                                {"host_timeout_ns", part.host_timeout.count()},
                                {"on_failure", static_cast<int>(part.on_failure)},
                                {"bind", part.bind},
                                {"output_in_colour", part.output_in_colour},
                                {"errors_in_colour", part.errors_in_colour}};
    return all.dump() + '\n';
}

Result<Part> decode_part(std::string_view line) {
    if (line.size() > kMaxPartBytes) return malformed();
    try {
        const auto all = nlohmann::json::parse(line);
        if (all.at("version") != kVersion) return malformed();
        Part part{.join = from_bytes(all.at("join")),
                  .world = all.at("world").get<std::uint32_t>(),
                  .first_rank = all.at("first_rank").get<std::uint32_t>(),
                  .count = all.at("count").get<std::uint32_t>(),
                  .command = from_list(all.at("command")),
                  .environment = from_list(all.at("environment")),
                  .directory = from_bytes(all.at("directory")),
                  .grace = Duration(all.at("grace_ns").get<std::int64_t>()),
                  .host_timeout = Duration(all.at("host_timeout_ns").get<std::int64_t>()),
                  .on_failure = static_cast<OnFailure>(all.at("on_failure").get<std::uint8_t>()),
                  .bind = all.at("bind").get<bool>(),
                  .output_in_colour = all.at("output_in_colour").get<bool>(),
                  .errors_in_colour = all.at("errors_in_colour").get<bool>()};
        if (!possible(part)) return malformed();
        return part;
    } catch (const nlohmann::json::exception&) {
        return malformed();
    }
}

}  // namespace nexar::run
