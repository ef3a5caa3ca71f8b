#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "link/shm/carrier.hpp"
#include "link/shm/memory.hpp"
#include "link/shm/record.hpp"
#include "link/shm/ring.hpp"
#include "link/shm/socket.hpp"

namespace nexar::testing {

/// A process that shakes hands as the protocol demands, and then writes what it likes: into its own
/// memory, which is all that it can write, and over the socket.
class HostilePeer {
public:
    /// Accepts an invitation; null if the inviter does not answer.
    static std::unique_ptr<HostilePeer> join(shm::Carrier& victim, TimePoint& now) {
        const auto invitation = victim.invite(now, Identity{}).value();
        const auto text = shm::InvitationText::decode(invitation.bytes).value();
        auto peer = std::make_unique<HostilePeer>();
        peer->socket = std::move(*shm::connect_to(text.socket));
        const shm::Greeting hello{.nonce = text.presented, .ring_bytes = peer->own.ring_bytes()};
        shm::send_message(peer->socket.number(), hello.encoded(), peer->own.descriptor());
        now += std::chrono::milliseconds(3);
        victim.on_ready(now);
        shm::Message message;
        if (shm::receive_message(peer->socket.number(), message) != shm::Received::message) {
            return nullptr;
        }
        const auto answer = shm::Greeting::decode(message.content());
        if (!answer || message.descriptor_count != 1) return nullptr;
        peer->theirs =
            std::move(*shm::RingMemory::map_peer(message.descriptors.front(), answer->ring_bytes));
        peer->writer = shm::RingWriter(peer->own.ring(), peer->own.ring_bytes(),
                                       &peer->theirs.control().taken);
        return peer;
    }

    /// A record whose content is `bytes`; false if the ring is full.
    bool write(shm::RecordHead head, std::span<const std::byte> bytes) {
        head.bytes = static_cast<std::uint32_t>(bytes.size());
        if (!writer.has_room(bytes.size())) return false;
        if (!bytes.empty()) std::memcpy(writer.content(), bytes.data(), bytes.size());
        writer.commit(head);
        return true;
    }

    shm::RingMemory own = std::move(*shm::RingMemory::make(std::size_t{64} * 1024));
    shm::RingMemory theirs;
    shm::RingWriter writer;
    Descriptor socket;
};

}  // namespace nexar::testing
