#include "engine/in_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/peer_transfers.hpp"

namespace nexar::engine {

void PayloadReceiver::reject() {
    InStream* const rejected = std::exchange(stream, nullptr);
    if (rejected == nullptr) return;
    rejected->receiver_ = nullptr;
    streamed = 0;
    rejected->refuse();
}

void InStream::open() {
    transfers_->open(*this);
}

void InStream::wake() {
    transfers_->wake(*this);
}

void InStream::refuse() {
    if (std::exchange(refused_, true)) return;
    transfers_->refuse(*this);
}

std::size_t InStream::write_payload(std::uint64_t offset, port::ConstBytes bytes) noexcept {
    if (refused_) return bytes.size();
    if (receiver_ == nullptr || bytes.empty()) return 0;
    if (bytes.size() > receiver_->bytes - std::min(offset, receiver_->bytes)) {
        transfers_->cut_off(Error(Errc::protocol_violation,
                                  "the peer sent a payload that is longer than its header said"));
        refuse();
        return bytes.size();
    }
    // They arrived on a link that broke.
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(
        receiver_->streamed - std::min(offset, receiver_->streamed), bytes.size()));
    if (known == bytes.size()) return known;
    PayloadReceiver& receiver = *receiver_;
    const std::size_t taken = known + receiver.write(offset + known, bytes.subspan(known));
    // The receiver may have detached itself, and a receiver without a stream begins anew.
    if (receiver_ == &receiver) receiver.streamed = std::max(receiver.streamed, offset + taken);
    return taken;
}

std::size_t InStream::write(std::uint64_t offset, port::ConstBytes bytes) noexcept {
    std::size_t taken = 0;
    if (offset < preamble_.size()) {
        taken = std::min(preamble_.size() - static_cast<std::size_t>(offset), bytes.size());
        std::memcpy(preamble_.data() + offset, bytes.data(), taken);
        if (offset + taken < preamble_.size()) return taken;
        transfers_->named(*this);
        offset += taken;
    }
    return taken + write_payload(offset - preamble_.size(), bytes.subspan(taken));
}

port::Bytes InStream::region(std::uint64_t offset, std::size_t bytes) noexcept {
    if (offset < preamble_.size() || receiver_ == nullptr) return {};
    offset -= preamble_.size();
    if (offset < receiver_->streamed) return {};
    receiver_->streamed = offset;
    const std::uint64_t left = receiver_->bytes - std::min(offset, receiver_->bytes);
    return receiver_->region(offset,
                             static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left)));
}

}  // namespace nexar::engine
