#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace nexar::security {

/// One element of DER (X.690).
struct DerElement {
    std::byte tag{};
    std::span<const std::byte> content{};
};

/// Reads elements one after another, without allocating. Only what X.509 uses: tags of one byte and
/// lengths of at most three bytes in the one form that DER allows.
class DerReader {
public:
    explicit DerReader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

    bool done() const noexcept { return rest_.empty(); }

    /// The next element; nothing when the bytes are no element. A reader that gave nothing stays
    /// where it is.
    std::optional<DerElement> next() noexcept;

    /// The next element if it has this tag.
    std::optional<DerElement> next(std::byte tag) noexcept;

private:
    std::span<const std::byte> rest_;
};

/// How many subject alternative names a certificate has, found by walking its DER, so that a
/// certificate with too many is refused before anything takes memory for them. At most `limit` + 1
/// are counted. Nothing when the bytes are not one certificate, or have that extension twice.
std::optional<std::size_t> count_alternative_names(std::span<const std::byte> certificate,
                                                   std::size_t limit) noexcept;

}  // namespace nexar::security
