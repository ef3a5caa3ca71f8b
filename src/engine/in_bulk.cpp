#include "engine/in_bulk.hpp"

#include <algorithm>
#include <cstring>

#include "engine/call.hpp"
#include "engine/collective.hpp"

namespace nexar::engine {

std::size_t InBulk::write_call(port::ConstBytes bytes) noexcept {
    if (call_payload == nullptr || !call_payload->known) return 0;
    std::vector<std::byte>& taken = call_payload->bytes;
    if (bytes.size() > call_payload->size - taken.size()) {
        owner_->overran(*this);
        return bytes.size();
    }
    taken.insert(taken.end(), bytes.begin(), bytes.end());
    return bytes.size();
}

std::size_t InBulk::write_content(std::uint64_t offset, port::ConstBytes bytes) noexcept {
    if (refused) return bytes.size();
    if (of_call) return write_call(bytes);
    if (of_collective) return collective == nullptr ? 0 : collective->write(offset, bytes);
    if (message == nullptr || bytes.empty()) return 0;
    if (bytes.size() > message->bytes - std::min(offset, message->bytes)) {
        owner_->overran(*this);
        return bytes.size();
    }
    if (message->receiver != nullptr) return message->receiver->write(offset, bytes);
    const port::Bytes place = MessageStore::storage(*message);
    if (offset >= place.size()) return 0;
    const auto room = place.subspan(static_cast<std::size_t>(offset));
    const std::size_t taken = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), taken);
    message->received = offset + taken;
    return taken;
}

std::size_t InBulk::write(std::uint64_t offset, port::ConstBytes bytes) noexcept {
    std::size_t taken = 0;
    if (offset < preamble_.size()) {
        taken = std::min(preamble_.size() - static_cast<std::size_t>(offset), bytes.size());
        std::memcpy(preamble_.data() + offset, bytes.data(), taken);
        if (offset + taken < preamble_.size()) return taken;
        owner_->named(*this, preamble_);
        offset += taken;
    }
    return taken + write_content(offset - preamble_.size(), bytes.subspan(taken));
}

port::Bytes InBulk::region(std::uint64_t offset, std::size_t bytes) noexcept {
    if (offset < preamble_.size() || message == nullptr || message->receiver == nullptr) return {};
    offset -= preamble_.size();
    const std::uint64_t left = message->bytes - std::min(offset, message->bytes);
    return message->receiver->region(
        offset, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left)));
}

}  // namespace nexar::engine
