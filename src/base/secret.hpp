#pragma once

#include <cstddef>
#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <string_view>
#include <utility>

namespace nexar {

/// Overwrites memory with zeros in a way that the compiler keeps, also where nobody reads it again.
void wipe(std::span<std::byte> bytes) noexcept;

/// Bytes that must not be shown: a key, a token, the secret of a job.
///
/// There is one copy of them, in memory of its own, wiped before it is given back; moving hands
/// that memory over. Nothing prints or logs a Secret: it does not compile. Whoever needs the bytes
/// says so with reveal(). Not for use by two threads at once unless both only read.
class Secret {
public:
    /// An empty one.
    Secret() noexcept = default;

    /// Copies the bytes; wiping the original is the caller's part.
    explicit Secret(std::span<const std::byte> bytes);

    /// Two hexadecimal digits per byte, either case. An Error (invalid_argument) does not quote the
    /// text.
    static Result<Secret> from_hex(std::string_view text);

    /// Lets `fill(std::span<std::byte>)` write `size` bytes in place: from a random source, or from
    /// a file.
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

    /// Calls `use(std::span<const std::byte>)`, which must keep neither the span nor a copy of what
    /// it shows longer than needed, and returns its result.
    template <class Use>
    decltype(auto) reveal(Use&& use) const {
        return std::forward<Use>(use)(std::span<const std::byte>(bytes_.get(), size_));
    }

    /// Takes a time that depends on the sizes only.
    friend bool operator==(const Secret& a, const Secret& b) noexcept;

private:
    explicit Secret(std::size_t size);

    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
};

}  // namespace nexar
