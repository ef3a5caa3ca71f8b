#include "link/shm/in_stream.hpp"

#include "base/assert.hpp"

namespace nexar::shm {

std::size_t Inlet::offer(port::ConstBytes bytes) noexcept {
    const std::size_t taken = sink_->write(this->taken(), bytes);
    NEXAR_ASSERT(taken <= bytes.size(), "a sink cannot take more than it was given");
    pending_ = taken < bytes.size();
    return taken;
}

void Inlet::arrive(port::ConstBytes bytes) {
    if (sink_ != nullptr && !pending_ && parked_.empty() && !bytes.empty()) {
        const std::size_t taken = offer(bytes);
        arrived_ += taken;
        bytes = bytes.subspan(taken);
    }
    if (bytes.empty()) return;
    parked_.append(bytes);
    arrived_ += bytes.size();
}

void Inlet::retry() {
    // The sink may call the link, which only enqueues, so nothing here changes meanwhile
    // except that Link::drop() detaches the sink.
    if (sink_ == nullptr || pending_ || parked_.empty()) return;
    parked_.drop(offer(parked_.view()));
}

}  // namespace nexar::shm
