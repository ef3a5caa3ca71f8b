#include "engine/message.hpp"

#include "base/try.hpp"

namespace nexar::engine {

Result<void> MessageStore::reserve(InMessage& message, std::size_t bytes) {
    if (bytes > InMessage::kBlockBytes) {
        NEXAR_TRY_VALUE(buffer, pool_->checkout(bytes));
        message.place = std::move(buffer);
    } else if (bytes > sizeof(InMessage::Small)) {
        message.place = &blocks_.make();
    }
    message.stored = bytes;
    return {};
}

port::Bytes MessageStore::storage(InMessage& message) noexcept {
    if (auto* small = std::get_if<InMessage::Small>(&message.place)) {
        return port::Bytes(*small).first(message.stored);
    }
    if (auto* block = std::get_if<InMessage::Block*>(&message.place)) {
        return port::Bytes(**block).first(message.stored);
    }
    return std::get<PooledBuffer>(message.place).span();
}

void MessageStore::end(InMessage& message) noexcept {
    if (auto* block = std::get_if<InMessage::Block*>(&message.place)) blocks_.end(**block);
    messages_.end(message);
}

}  // namespace nexar::engine
