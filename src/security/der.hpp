#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace nexar::security {

/// One DER element (X.690).
struct DerElement {
    std::byte tag{};
    std::span<const std::byte> content{};
};

/// Reads elements one after another, without allocating. Supports what X.509 uses: one-byte tags,
/// and lengths of at most three bytes in the only form that DER allows.
class DerReader {
public:
    explicit DerReader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

    bool done() const noexcept { return rest_.empty(); }

    /// Returns the next element, or nullopt if the bytes are not an element; the position does not
    /// change then.
    std::optional<DerElement> next() noexcept;

    /// Returns the next element if it has this tag, else nullopt; the position does not change
    /// then.
    std::optional<DerElement> next(std::byte tag) noexcept;

private:
    std::span<const std::byte> rest_;
};

/// Counts the subject alternative names of a certificate by walking its DER, so that a certificate
/// with too many can be refused before anything allocates memory for them. Stops counting at
/// `limit` + 1. Returns nullopt if the bytes are not exactly one certificate, or if it has that
/// extension twice.
std::optional<std::size_t> count_alternative_names(std::span<const std::byte> certificate,
                                                   std::size_t limit) noexcept;

}  // namespace nexar::security
