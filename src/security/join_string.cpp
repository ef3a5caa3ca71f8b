#include "security/join_string.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/address.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "security/digest.hpp"

namespace nexar::security {

namespace {

constexpr std::string_view kVersion = "nexar1";
constexpr std::size_t kCheckBytes = 4;
constexpr std::size_t kParts = 5;
constexpr std::size_t kMaxHostNameBytes = 253;  // RFC 1035 2.3.4

Error bad_join_string(std::string_view what) {
    return {Errc::bad_config,
            fmt::format("the join string cannot be used: {}; use the whole line that `nexar token "
                        "create` printed",
                        what)};
}

std::string check_of(std::string_view front, std::string_view seeds) {
    const std::string all = fmt::format("{}@{}", front, seeds);
    const Digest digest = sha256(std::as_bytes(std::span(all)));
    return nexar::detail::hex_digits(std::span<const std::byte>(digest).first(kCheckBytes));
}

std::optional<std::array<std::string_view, kParts>> split(std::string_view front) {
    std::array<std::string_view, kParts> parts;
    for (std::size_t i = 0; i < kParts; ++i) {
        const std::size_t end = front.find('.');
        if ((end == std::string_view::npos) != (i + 1 == kParts)) return std::nullopt;
        parts[i] = front.substr(0, end);
        front.remove_prefix(end == std::string_view::npos ? front.size() : end + 1);
    }
    return parts;
}

bool host_character(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

Error bad_host_port(std::string_view text) {
    return {Errc::invalid_argument,
            fmt::format("{} is not a host with a port; allowed: 10.0.0.7:7400, [fd00::7]:7400 or "
                        "name:7400",
                        in_quotes(text))};
}

Result<std::vector<std::string>> read_seeds(std::string_view text) {
    std::vector<std::string> seeds;
    for (;;) {
        const std::size_t end = text.find(',');
        const std::string_view one = text.substr(0, end);
        if (!HostPort::parse(one)) {
            return bad_join_string("the part after the @ is not a list of seeds (host:port)");
        }
        if (seeds.size() == JoinString::kMaxSeeds)
            return bad_join_string("it names too many seeds");
        seeds.emplace_back(one);
        if (end == std::string_view::npos) return seeds;
        text.remove_prefix(end + 1);
    }
}

}  // namespace

Result<HostPort> HostPort::parse(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return bad_host_port(text);
    std::string_view host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    HostPort made;
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), made.port);
    if (code != std::errc{} || end != digits.data() + digits.size() || made.port == 0) {
        return bad_host_port(text);
    }
    if (host.starts_with('[')) {
        if (!Address::parse(text)) return bad_host_port(text);
        made.host = host.substr(1, host.size() - 2);
        return made;
    }
    const bool name = !host.empty() && host.size() <= kMaxHostNameBytes &&
                      std::ranges::all_of(host, host_character);
    if (!name) return bad_host_port(text);
    made.host = host;
    return made;
}

Result<JoinString> JoinString::parse(std::string_view text) {
    if (text.size() > kMaxBytes) return bad_join_string("it is too long");
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos) return bad_join_string("it has no @ followed by a seed");
    const std::string_view front = text.substr(0, at);
    const std::string_view seeds = text.substr(at + 1);
    const auto parts = split(front);
    if (!parts || (*parts)[0] != kVersion) {
        return bad_join_string("it does not begin with nexar1 followed by four parts");
    }
    const auto& [version, token, secret, ca, check] = *parts;
    if (check_of(front.substr(0, front.size() - check.size()), seeds) != check) {
        return bad_join_string("it was changed or truncated");
    }
    JoinString made;
    const auto id = TokenId::from_hex(token);
    bool secret_is_hex = false;  // not Secret::from_hex(), which accepts upper case
    made.secret = Secret::filled(kTokenSecretBytes, [&](std::span<std::byte> bytes) {
        secret_is_hex = nexar::detail::from_hex_digits(secret, bytes);
    });
    if (!id || !secret_is_hex || !nexar::detail::from_hex_digits(ca, made.ca)) {
        return bad_join_string("one of its parts is malformed");
    }
    made.token = *id;
    NEXAR_TRY_VALUE(list, read_seeds(seeds));
    made.seeds = std::move(list);
    return made;
}

std::string JoinString::text() const {
    std::string list;
    for (const std::string& seed : seeds) list += (list.empty() ? "" : ",") + seed;
    const std::string front = secret.reveal([&](std::span<const std::byte> bytes) {
        return fmt::format("{}.{}.{}.{}.", kVersion, token.to_hex(),
                           nexar::detail::hex_digits(bytes), nexar::detail::hex_digits(ca));
    });
    return fmt::format("{}{}@{}", front, check_of(front, list), list);
}

}  // namespace nexar::security
