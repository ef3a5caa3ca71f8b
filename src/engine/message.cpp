#include "engine/message.hpp"

#include "base/try.hpp"

namespace nexar::engine {

Result<void> MessageStore::reserve(InMessage& message, std::size_t bytes) {
    if (bytes > InMessage::kBlockBytes) {
        NEXAR_TRY_VALUE(buffer, pool_->checkout(bytes));
        message.buffer = std::move(buffer);
    } else if (bytes > InMessage::kInlineBytes) {
        message.block = &blocks_.make();
    }
    message.stored = bytes;
    return {};
}

port::Bytes MessageStore::storage(InMessage& message) noexcept {
    if (message.block != nullptr) return port::Bytes(*message.block).first(message.stored);
    if (message.buffer.size() != 0) return message.buffer.span();
    return port::Bytes(message.small).first(message.stored);
}

void MessageStore::end(InMessage& message) noexcept {
    if (message.block != nullptr) blocks_.end(*message.block);
    messages_.end(message);
}

}  // namespace nexar::engine
