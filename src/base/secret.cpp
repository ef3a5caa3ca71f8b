#include "base/secret.hpp"

#include <algorithm>
#include <cstring>

namespace nexar {

namespace {

constexpr int kNotHex = 256;

/// The value of a hexadecimal digit, or kNotHex. The branches depend on the text, which is
/// acceptable because a secret is parsed only once, from input that its owner provides.
int digit_value(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return kNotHex;
}

}  // namespace

void wipe(std::span<std::byte> bytes) noexcept {
    if (!bytes.empty()) explicit_bzero(bytes.data(), bytes.size());
}

Secret::Secret(std::size_t size)
    : bytes_(size == 0 ? nullptr : std::make_unique<std::byte[]>(size)), size_(size) {}

Secret::Secret(std::span<const std::byte> bytes) : Secret(bytes.size()) {
    std::ranges::copy(bytes, bytes_.get());
}

Result<Secret> Secret::from_hex(std::string_view text) {
    if (text.size() % 2 != 0) {
        return Error(
            Errc::invalid_argument,
            "a hexadecimal secret has an odd number of digits; allowed: two digits per byte");
    }
    Secret secret(text.size() / 2);
    for (std::size_t i = 0; i < secret.size_; ++i) {
        const int value = digit_value(text[2 * i]) * 16 + digit_value(text[2 * i + 1]);
        if (value >= kNotHex) {
            return Error(Errc::invalid_argument,
                         "a hexadecimal secret contains a character that is not a digit; allowed: "
                         "0-9, a-f, A-F");
        }
        secret.bytes_[i] = static_cast<std::byte>(value);
    }
    return secret;
}

Secret& Secret::operator=(Secret&& other) noexcept {
    if (this != &other) {
        wipe({bytes_.get(), size_});
        bytes_ = std::move(other.bytes_);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

Secret::~Secret() {
    wipe({bytes_.get(), size_});
}

bool operator==(const Secret& a, const Secret& b) noexcept {
    if (a.size_ != b.size_) return false;
    std::byte difference{};
    for (std::size_t i = 0; i < a.size_; ++i) {
        // Volatile reads keep the compiler from exiting the loop at the first difference.
        const volatile std::byte& x = a.bytes_[i];
        const volatile std::byte& y = b.bytes_[i];
        difference |= x ^ y;
    }
    return difference == std::byte{};
}

}  // namespace nexar
