#include "engine/message.hpp"

#include "base/try.hpp"

namespace nexar::engine {

Result<void> MessageStore::reserve(InMessage& message, std::size_t bytes) {
    if (bytes > InMessage::kMaxBlockBytes) {
        NEXAR_TRY_VALUE(buffer, pool_->checkout(bytes));
        message.buffer = std::move(buffer);
    } else if (bytes > 1024) {
        message.block = large_.make().data();
    } else if (bytes > 512) {
        message.block = medium_.make().data();
    } else if (bytes > InMessage::kInlineBytes) {
        message.block = small_.make().data();
    }
    message.stored = bytes;
    return {};
}

port::Bytes MessageStore::storage(InMessage& message) noexcept {
    if (message.block != nullptr) return {message.block, message.stored};
    if (message.buffer.size() != 0) return message.buffer.span();
    return port::Bytes(message.small).first(message.stored);
}

namespace {

template <class Block>
void end_block(Slab<Block>& blocks, std::byte* block) noexcept {
    blocks.end(*reinterpret_cast<Block*>(block));  // its first byte is where it stands
}

}  // namespace

void MessageStore::end(InMessage& message) noexcept {
    if (message.block != nullptr) {
        if (message.stored > 1024) {
            end_block(large_, message.block);
        } else if (message.stored > 512) {
            end_block(medium_, message.block);
        } else {
            end_block(small_, message.block);
        }
    }
    messages_.end(message);
}

std::size_t MessageStore::held_bytes() const noexcept {
    return messages_.held_bytes() + small_.held_bytes() + medium_.held_bytes() +
           large_.held_bytes();
}

}  // namespace nexar::engine
