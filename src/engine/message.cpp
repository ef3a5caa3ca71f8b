#include "engine/message.hpp"

#include <algorithm>
#include <cstring>

#include "base/try.hpp"

namespace nexar::engine {

std::size_t InMessage::write(std::uint64_t offset, port::ConstBytes from) noexcept {
    if (discard) return from.size();
    if (receiver != nullptr) return receiver->write(offset, from);
    const port::Bytes storage = MessageStore::storage(*this);
    if (offset >= storage.size()) return 0;
    const port::Bytes room = storage.subspan(static_cast<std::size_t>(offset));
    const std::size_t taken = std::min(room.size(), from.size());
    std::memcpy(room.data(), from.data(), taken);
    received = offset + taken;
    return taken;
}

port::Bytes InMessage::region(std::uint64_t offset, std::size_t most) noexcept {
    return receiver == nullptr ? port::Bytes{} : receiver->region(offset, most);
}

Result<void> MessageStore::reserve(InMessage& message, std::size_t bytes) {
    if (bytes > InMessage::kMaxBlockBytes) {
        NEXAR_TRY_VALUE(buffer, pool_->checkout(bytes));
        message.place = std::move(buffer);
    } else if (bytes > 1024) {
        message.place = large_.make().data();
    } else if (bytes > 512) {
        message.place = medium_.make().data();
    } else if (bytes > sizeof(InMessage::Small)) {
        message.place = small_.make().data();
    }
    message.stored = bytes;
    return {};
}

port::Bytes MessageStore::storage(InMessage& message) noexcept {
    if (auto* small = std::get_if<InMessage::Small>(&message.place)) {
        return port::Bytes(*small).first(message.stored);
    }
    if (auto* block = std::get_if<std::byte*>(&message.place)) return {*block, message.stored};
    return std::get<PooledBuffer>(message.place).span();
}

namespace {

template <class Block>
void end_block(Slab<Block>& blocks, std::byte* block) noexcept {
    blocks.end(*reinterpret_cast<Block*>(block));  // the array is at the start of the block
}

}  // namespace

void MessageStore::end(InMessage& message) noexcept {
    if (auto* block = std::get_if<std::byte*>(&message.place)) {
        if (message.stored > 1024) {
            end_block(large_, *block);
        } else if (message.stored > 512) {
            end_block(medium_, *block);
        } else {
            end_block(small_, *block);
        }
    }
    messages_.end(message);
}

std::size_t MessageStore::held_bytes() const noexcept {
    return messages_.held_bytes() + small_.held_bytes() + medium_.held_bytes() +
           large_.held_bytes();
}

}  // namespace nexar::engine
