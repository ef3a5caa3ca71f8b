#include "link/quic/in_stream.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::quic {

std::uint64_t WindowTuner::consumed(TimePoint now, std::uint64_t bytes,
                                    Duration round_trip) noexcept {
    if (!began_) began_ = now;
    since_ += bytes;
    if (since_ < window_ / 2) return 0;
    const bool fast = now - *began_ < round_trip;
    since_ = 0;
    began_ = now;
    if (!fast || window_ >= most_) return 0;
    const std::uint64_t growth = std::min(window_, most_ - window_);
    window_ += growth;
    return growth;
}

Result<std::size_t> InStream::arrived(port::ConstBytes bytes) {
    if (abandoned_) return bytes.size();
    std::size_t taken = 0;
    if (sink_ != nullptr && parked_.size() == 0) {
        taken = sink_->write(taken_, bytes);
        NEXAR_ASSERT(taken <= bytes.size());
        taken_ += taken;
        if (taken == bytes.size()) return taken;
    }
    const port::ConstBytes rest = bytes.subspan(taken);
    NEXAR_TRY(parked_.append({&rest, 1}));
    return taken;
}

std::size_t InStream::retry() noexcept {
    const std::uint64_t before = taken_;
    while (sink_ != nullptr && parked_.size() != 0) {
        const port::ConstBytes bytes = parked_.at(parked_.begin());
        const std::size_t taken = sink_->write(taken_, bytes);
        NEXAR_ASSERT(taken <= bytes.size());
        taken_ += taken;
        parked_.release_to(parked_.begin() + taken);
        if (taken < bytes.size()) break;
    }
    if (parked_.size() == 0) parked_.clear();
    return static_cast<std::size_t>(taken_ - before);
}

std::vector<std::byte> InStream::take_parked() {
    std::vector<std::byte> bytes;
    bytes.reserve(static_cast<std::size_t>(parked_.size()));
    while (parked_.size() != 0) {
        const port::ConstBytes piece = parked_.at(parked_.begin());
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        parked_.release_to(parked_.begin() + piece.size());
    }
    parked_.clear();
    return bytes;
}

std::uint64_t InStream::abandon() noexcept {
    abandoned_ = true;
    sink_ = nullptr;
    const std::uint64_t dropped = parked_.size();
    parked_.clear();
    return dropped;
}

}  // namespace nexar::quic
