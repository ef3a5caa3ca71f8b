#include "security/der.hpp"

#include <algorithm>
#include <array>

namespace nexar::security {

namespace {

constexpr std::byte kBoolean{0x01};
constexpr std::byte kOctetString{0x04};
constexpr std::byte kObjectId{0x06};
constexpr std::byte kSequence{0x30};
constexpr std::byte kExtensions{0xa3};  // [3] of TBSCertificate (RFC 5280 section 4.1)

/// 2.5.29.17, subjectAltName.
constexpr std::array<std::byte, 3> kAlternativeName{std::byte{0x55}, std::byte{0x1d},
                                                    std::byte{0x11}};

struct Length {
    std::size_t value = 0;
    std::size_t bytes = 0;  // of the encoded length itself
};

std::optional<Length> read_length(std::span<const std::byte> bytes) noexcept {
    if (bytes.empty()) return std::nullopt;
    const auto first = std::to_integer<std::size_t>(bytes[0]);
    if (first < 0x80) return Length{first, 1};
    const std::size_t count = first - 0x80;
    if (count < 1 || count > 3 || bytes.size() < 1 + count) return std::nullopt;
    std::size_t value = 0;
    for (const std::byte b : bytes.subspan(1, count)) {
        value = value * 256 + std::to_integer<std::size_t>(b);
    }
    const std::size_t least = count == 1 ? 0x80 : std::size_t{1} << (8 * (count - 1));
    if (value < least) return std::nullopt;
    return Length{value, 1 + count};
}

/// The content of the element if `bytes` is exactly one element with this tag.
std::optional<std::span<const std::byte>> only(std::span<const std::byte> bytes,
                                               std::byte tag) noexcept {
    DerReader reader(bytes);
    const auto element = reader.next(tag);
    if (!element || !reader.done()) return std::nullopt;
    return element->content;
}

/// The SEQUENCE OF Extension of a certificate; empty if it has no extensions, nullopt if the bytes
/// are not a certificate.
std::optional<std::span<const std::byte>> extensions_of(
    std::span<const std::byte> certificate) noexcept {
    const auto outer = only(certificate, kSequence);
    if (!outer) return std::nullopt;
    const auto signed_part = DerReader(*outer).next(kSequence);
    if (!signed_part) return std::nullopt;
    DerReader fields(signed_part->content);
    while (!fields.done()) {
        const auto field = fields.next();
        if (!field) return std::nullopt;
        if (field->tag != kExtensions) continue;
        if (!fields.done()) return std::nullopt;
        return only(field->content, kSequence);
    }
    return std::span<const std::byte>();
}

std::optional<std::size_t> count_elements(std::span<const std::byte> sequence,
                                          std::size_t limit) noexcept {
    DerReader names(sequence);
    std::size_t count = 0;
    while (!names.done() && count <= limit) {
        if (!names.next()) return std::nullopt;
        ++count;
    }
    return count;
}

struct Extension {
    std::span<const std::byte> oid{};
    std::span<const std::byte> value{};
};

std::optional<Extension> read_extension(std::span<const std::byte> content) noexcept {
    DerReader reader(content);
    const auto oid = reader.next(kObjectId);
    if (!oid) return std::nullopt;
    (void)reader.next(kBoolean);  // critical, absent when false
    const auto value = reader.next(kOctetString);
    if (!value || !reader.done()) return std::nullopt;
    return Extension{oid->content, value->content};
}

}  // namespace

std::optional<DerElement> DerReader::next() noexcept {
    if (rest_.empty()) return std::nullopt;
    const std::byte tag = rest_[0];
    if ((tag & std::byte{0x1f}) == std::byte{0x1f}) return std::nullopt;  // a multi-byte tag
    const auto length = read_length(rest_.subspan(1));
    if (!length) return std::nullopt;
    const std::size_t head = 1 + length->bytes;
    if (length->value > rest_.size() - head) return std::nullopt;
    const DerElement element{tag, rest_.subspan(head, length->value)};
    rest_ = rest_.subspan(head + length->value);
    return element;
}

std::optional<DerElement> DerReader::next(std::byte tag) noexcept {
    if (rest_.empty() || rest_[0] != tag) return std::nullopt;
    return next();
}

std::optional<std::size_t> count_alternative_names(std::span<const std::byte> certificate,
                                                   std::size_t limit) noexcept {
    const auto extensions = extensions_of(certificate);
    if (!extensions) return std::nullopt;
    std::optional<std::size_t> names;
    DerReader reader(*extensions);
    while (!reader.done()) {
        const auto element = reader.next(kSequence);
        if (!element) return std::nullopt;
        const auto extension = read_extension(element->content);
        if (!extension) return std::nullopt;
        if (!std::ranges::equal(extension->oid, kAlternativeName)) continue;
        const auto sequence = only(extension->value, kSequence);
        if (names || !sequence) return std::nullopt;
        names = count_elements(*sequence, limit);
        if (!names) return std::nullopt;
    }
    return names.value_or(0);
}

}  // namespace nexar::security
