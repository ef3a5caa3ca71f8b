#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "harness.hpp"
#include "link/shm/carrier.hpp"
#include "link/shm/invitation.hpp"
#include "link/shm/memory.hpp"

/// The messages that begin a shared-memory link.
///
/// The first byte says which one the rest is: bits 0 and 1: an invitation, a hello, an answer or a
/// share note. Of a hello and an answer, bit 2: the harness puts the right nonce into it; bits 3
/// and 4: it comes with a good descriptor, one without seals, none, or one of a file.
namespace nexar::fuzz {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRingBytes = std::size_t{64} * 1024;
constexpr std::size_t kNonceOffset = 8;

bool accepts_invitation(std::span<const std::byte> bytes) {
    const auto text = shm::InvitationText::decode(bytes);
    if (!text) return false;
    const auto again = text->encoded();
    NEXAR_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
    return true;
}

bool accepts_share_note(std::span<const std::byte> bytes) {
    const auto note = shm::ShareNote::decode(bytes);
    if (!note) return false;
    const auto again = note->encoded();
    NEXAR_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
    return true;
}

/// The descriptors that a peer may send.
class Descriptors {
public:
    int number(unsigned which) const noexcept {
        constexpr std::array kNone{-1};
        switch (which) {
            case 0:
                return good_.descriptor();
            case 1:
                return unsealed_.number();
            case 2:
                return kNone.front();
            default:
                return STDERR_FILENO;
        }
    }

private:
    shm::RingMemory good_ = std::move(*shm::RingMemory::make(kRingBytes));
    Descriptor unsealed_ = std::move(*shm::make_memory(shm::page_bytes() + kRingBytes));
};

std::vector<std::byte> with_nonce(std::span<const std::byte> bytes, const shm::Nonce& nonce) {
    std::vector<std::byte> made(bytes.begin(), bytes.end());
    if (made.size() >= kNonceOffset + nonce.size()) {
        std::copy(nonce.begin(), nonce.end(), made.begin() + kNonceOffset);
    }
    return made;
}

/// Takes turns until the link is up or down; true if it was up.
bool comes_up(shm::Carrier& carrier, TimePoint& now) {
    bool up = false;
    for (int i = 0; i < 8; ++i) {
        now += i < 3 ? 3ms : 1000ms;
        carrier.on_ready(now);
        carrier.flush(now);
        while (auto event = carrier.poll_event()) {
            if (std::holds_alternative<port::Up>(event->what)) up = true;
            if (!std::holds_alternative<port::Down>(event->what)) continue;
            carrier.forget(event->link);
            NEXAR_ASSERT(carrier.half_open() <= carrier.options().max_half_open);
            return up;
        }
    }
    return up;
}

bool accepts_hello(std::span<const std::byte> bytes, bool right_nonce, int descriptor) {
    static const auto carrier = std::move(*shm::Carrier::open());
    static TimePoint now(1000s);
    const auto invitation = carrier->invite(now, Identity{}).value();
    const auto text = shm::InvitationText::decode(invitation.bytes).value();
    Descriptor socket = std::move(*shm::connect_to(text.socket));
    NEXAR_ASSERT(static_cast<bool>(socket));
    const auto message = right_nonce ? with_nonce(bytes, text.presented)
                                     : std::vector<std::byte>(bytes.begin(), bytes.end());
    shm::send_message(socket.number(), message, descriptor);
    now += 3ms;
    carrier->on_ready(now);
    socket = Descriptor();
    return comes_up(*carrier, now);
}

bool accepts_answer(std::span<const std::byte> bytes, bool right_nonce, int descriptor) {
    static const auto carrier = std::move(*shm::Carrier::open());
    static TimePoint now(1000s);
    static std::uint64_t names = 0;
    shm::InvitationText text{.boot = shm::boot_id().value(), .user = ::geteuid()};
    const std::uint64_t name = (static_cast<std::uint64_t>(::getpid()) << 32U) | ++names;
    std::memcpy(text.socket.data(), &name, sizeof name);
    text.answered.fill(std::byte{9});
    const Descriptor listener = std::move(*shm::listen_at(text.socket));
    NEXAR_ASSERT(carrier->accept(now, Identity{}, text.encoded()).has_value());
    Descriptor socket = shm::accept_from(listener.number());
    NEXAR_ASSERT(static_cast<bool>(socket));
    const auto message = right_nonce ? with_nonce(bytes, text.answered)
                                     : std::vector<std::byte>(bytes.begin(), bytes.end());
    shm::send_message(socket.number(), message, descriptor);
    now += 3ms;
    carrier->on_ready(now);
    socket = Descriptor();
    return comes_up(*carrier, now);
}

}  // namespace

/// True if the message was accepted.
bool accepts_shm_handshake(std::span<const std::byte> input) {
    if (input.empty()) return false;
    const auto mode = std::to_integer<unsigned>(input.front());
    const auto bytes = input.subspan(1);
    static const Descriptors descriptors;
    const bool right_nonce = (mode & 4U) != 0;
    const int descriptor = descriptors.number((mode >> 3U) & 3U);
    switch (mode & 3U) {
        case 0:
            return accepts_invitation(bytes);
        case 1:
            return accepts_hello(bytes, right_nonce, descriptor);
        case 2:
            return accepts_answer(bytes, right_nonce, descriptor);
        default:
            return accepts_share_note(bytes);
    }
}

}  // namespace nexar::fuzz
