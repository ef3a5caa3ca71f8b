#pragma once

#include <cstddef>
#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <string_view>
#include <utility>

namespace nexar {

/// Overwrites memory with zeros. The compiler cannot remove this, even if nothing reads the memory
/// again.
void wipe(std::span<std::byte> bytes) noexcept;

/// Bytes that must not be shown: a key, a token, a job secret.
///
/// Holds the only copy, in memory of its own that is wiped before it is freed; moving transfers
/// that memory. Printing or logging a Secret does not compile. Code that needs the bytes calls
/// reveal(). Two threads may use a Secret at the same time only if both just read it.
class Secret {
public:
    Secret() noexcept = default;

    /// Copies the bytes; the caller must wipe the original.
    explicit Secret(std::span<const std::byte> bytes);

    /// Two hexadecimal digits per byte, either case. On failure, the Error (invalid_argument) does
    /// not quote the text.
    static Result<Secret> from_hex(std::string_view text);

    /// Calls `fill(std::span<std::byte>)`, which writes `size` bytes in place, for example from a
    /// random source or a file.
    template <class Fill>
    static Secret filled(std::size_t size, Fill&& fill) {
        Secret secret(size);
        std::forward<Fill>(fill)(std::span(secret.bytes_.get(), size));
        return secret;
    }

    Secret(Secret&& other) noexcept
        : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
    Secret& operator=(Secret&& other) noexcept;
    Secret(const Secret&) = delete;
    Secret& operator=(const Secret&) = delete;
    ~Secret();

    std::size_t size() const noexcept { return size_; }

    /// Calls `use(std::span<const std::byte>)` and returns its result. `use` must not keep the
    /// span, or a copy of the bytes, longer than needed.
    template <class Use>
    decltype(auto) reveal(Use&& use) const {
        return std::forward<Use>(use)(std::span<const std::byte>(bytes_.get(), size_));
    }

    /// Takes a time that depends only on the sizes.
    friend bool operator==(const Secret& a, const Secret& b) noexcept;

private:
    explicit Secret(std::size_t size);

    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
};

}  // namespace nexar
