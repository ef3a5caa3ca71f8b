#include "engine/message.hpp"

#include "base/try.hpp"

namespace nexar::engine {

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
    blocks.end(*reinterpret_cast<Block*>(block));  // its first byte is where it stands
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
