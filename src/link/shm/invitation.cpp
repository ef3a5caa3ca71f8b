#include "link/shm/invitation.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/assert.hpp"
#include "port/link.hpp"

namespace nexar::shm {

namespace {

constexpr std::uint32_t kInvitationMagic = 0x6e78'6931;  // "nxi1"
constexpr std::uint32_t kGreetingMagic = 0x6e78'6731;
constexpr std::uint32_t kShareMagic = 0x6e78'7331;
// Stands for all that both sides must agree on: the records, and the windows and limits of
// LinkOptions, which no message announces.
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kInvitationBytes = 8 + 16 * 4 + 4;
static_assert(kInvitationBytes <= port::kMaxInvitationBytes);

class Writer {
public:
    explicit Writer(std::span<std::byte> out) noexcept : out_(out) {}
    template <class T>
    void put(const T& value) noexcept {
        NEXAR_ASSERT(sizeof value <= out_.size());
        std::memcpy(out_.data(), &value, sizeof value);
        out_ = out_.subspan(sizeof value);
    }

private:
    std::span<std::byte> out_;
};

// The caller has checked the size.
class Reader {
public:
    explicit Reader(port::ConstBytes in) noexcept : in_(in) {}
    template <class T>
    T get() noexcept {
        NEXAR_ASSERT(sizeof(T) <= in_.size());
        T value{};
        std::memcpy(&value, in_.data(), sizeof value);
        in_ = in_.subspan(sizeof value);
        return value;
    }

private:
    port::ConstBytes in_;
};

int digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

bool same(const Nonce& a, const Nonce& b) noexcept {
    unsigned different = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        different |= std::to_integer<unsigned>(a[i] ^ b[i]);
    }
    return different == 0;
}

Result<BootId> boot_id() {
    const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    std::array<char, 64> text{};
    const ssize_t size = file ? ::read(file.number(), text.data(), text.size()) : -1;
    BootId id{};
    std::size_t digits = 0;
    for (ssize_t i = 0; i < size && digits < 2 * id.size(); ++i) {
        const int value = digit(text[static_cast<std::size_t>(i)]);
        if (value < 0) continue;
        std::byte& byte = id[digits / 2];
        byte = (byte << 4U) | static_cast<std::byte>(value);
        ++digits;
    }
    if (digits != 2 * id.size()) {
        return Error(Errc::not_allowed,
                     "this node cannot read /proc/sys/kernel/random/boot_id, which tells whether "
                     "two processes run on one host");
    }
    return id;
}

std::vector<std::byte> InvitationText::encoded() const {
    std::vector<std::byte> out(kInvitationBytes);
    Writer writer(out);
    writer.put(kInvitationMagic);
    writer.put(kVersion);
    writer.put(boot);
    writer.put(socket);
    writer.put(presented);
    writer.put(answered);
    writer.put(user);
    return out;
}

Result<InvitationText> InvitationText::decode(port::ConstBytes bytes) {
    if (bytes.size() < 8) {
        return Error(Errc::malformed, "the invitation of the peer is too short");
    }
    Reader reader(bytes);
    if (reader.get<std::uint32_t>() != kInvitationMagic) {
        return Error(Errc::malformed, "the peer sent something that is not an invitation");
    }
    if (reader.get<std::uint32_t>() != kVersion) {
        return Error(Errc::version_mismatch,
                     "the peer's version of shared-memory links differs from this node's");
    }
    if (bytes.size() != kInvitationBytes) {
        return Error(Errc::malformed, "the invitation of the peer has the wrong size");
    }
    InvitationText text;
    text.boot = reader.get<BootId>();
    text.socket = reader.get<SocketName>();
    text.presented = reader.get<Nonce>();
    text.answered = reader.get<Nonce>();
    text.user = reader.get<std::uint32_t>();
    return text;
}

std::array<std::byte, Greeting::kBytes> Greeting::encoded() const noexcept {
    std::array<std::byte, kBytes> out{};
    Writer writer(out);
    writer.put(kGreetingMagic);
    writer.put(kVersion);
    writer.put(nonce);
    writer.put(ring_bytes);
    writer.put(refusal);
    return out;
}

std::optional<Greeting> Greeting::decode(port::ConstBytes bytes) noexcept {
    if (bytes.size() != kBytes) return std::nullopt;
    Reader reader(bytes);
    if (reader.get<std::uint32_t>() != kGreetingMagic) return std::nullopt;
    if (reader.get<std::uint32_t>() != kVersion) return std::nullopt;
    Greeting greeting;
    greeting.nonce = reader.get<Nonce>();
    greeting.ring_bytes = reader.get<std::uint64_t>();
    const auto refusal = reader.get<std::uint32_t>();
    if (refusal >= kRefusals) return std::nullopt;
    greeting.refusal = static_cast<Refusal>(refusal);
    return greeting;
}

std::array<std::byte, ShareNote::kBytes> ShareNote::encoded() const noexcept {
    std::array<std::byte, kBytes> out{};
    Writer writer(out);
    writer.put(kShareMagic);
    writer.put(kVersion);
    writer.put(name);
    writer.put(bytes);
    writer.put(used);
    return out;
}

std::optional<ShareNote> ShareNote::decode(port::ConstBytes content) noexcept {
    if (content.size() != kBytes) return std::nullopt;
    Reader reader(content);
    if (reader.get<std::uint32_t>() != kShareMagic) return std::nullopt;
    if (reader.get<std::uint32_t>() != kVersion) return std::nullopt;
    ShareNote note;
    note.name = reader.get<std::uint64_t>();
    note.bytes = reader.get<std::uint64_t>();
    note.used = reader.get<std::uint64_t>();
    return note;
}

}  // namespace nexar::shm
