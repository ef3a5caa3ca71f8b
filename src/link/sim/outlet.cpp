#include "link/sim/outlet.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace nexar::sim {

Outlet::Outlet(port::StreamId id, port::Source& source, const port::StreamOptions& options,
               bool check)
    : source_(&source), id_(id), class_(link::write_class(options.priority)) {
    NEXAR_ASSERT(options.prefix.size() <= port::kMaxPrefixBytes);
    std::ranges::copy(options.prefix, prefix_.begin());
    prefix_bytes_ = options.prefix.size();
    regions_ = source.regions();
    size_ = prefix_bytes_ + source.size();
    if (!check || regions_.empty()) return;
    std::uint64_t shown = 0;
    for (const port::ConstBytes region : regions_) shown += region.size();
    NEXAR_ASSERT(shown == source.size(),
                 "the regions of a source hold its whole content, or nothing");
    hash_.reset(XXH3_createState());
    XXH3_64bits_reset(hash_.get());
}

std::uint64_t Outlet::sendable(std::uint64_t written) const noexcept {
    const std::uint64_t end = std::min(is_lane() ? written : size_, limit_);
    return end - std::min(end, sent_);
}

std::size_t Outlet::send(std::size_t n, ByteQueue& onto) {
    if (is_lane()) {
        sent_ += n;
        return n;
    }
    NEXAR_ASSERT(source_ != nullptr, "a released stream cannot be sent");
    std::size_t moved = send_prefix(n, onto);
    if (moved < n) {
        moved += regions_.empty() ? send_asked(n - moved, onto) : send_regions(n - moved, onto);
    }
    return moved;
}

std::size_t Outlet::send_prefix(std::size_t n, ByteQueue& onto) {
    if (sent_ >= prefix_bytes_) return 0;
    const auto rest =
        port::ConstBytes(prefix_).first(prefix_bytes_).subspan(static_cast<std::size_t>(sent_));
    const auto piece = rest.first(std::min(n, rest.size()));
    onto.append(piece);
    sent_ += piece.size();
    return piece.size();
}

std::size_t Outlet::send_regions(std::size_t n, ByteQueue& onto) {
    const std::uint64_t readable = prefix_bytes_ + source_->ready();
    NEXAR_ASSERT(readable >= sent_ && readable <= size_, "ready() can only grow, up to size()");
    n = static_cast<std::size_t>(std::min<std::uint64_t>(n, readable - sent_));
    std::size_t moved = 0;
    while (moved < n) {
        const port::ConstBytes rest = regions_[region_].subspan(in_region_);
        const port::ConstBytes piece = rest.first(std::min(n - moved, rest.size()));
        onto.append(piece);
        if (hash_) XXH3_64bits_update(hash_.get(), piece.data(), piece.size());
        moved += piece.size();
        in_region_ += piece.size();
        if (in_region_ == regions_[region_].size() && region_ + 1 < regions_.size()) {
            ++region_;
            in_region_ = 0;
        }
    }
    sent_ += moved;
    source_pending = sent_ == readable && readable != size_;
    return moved;
}

std::size_t Outlet::send_asked(std::size_t n, ByteQueue& onto) {
    const port::Bytes room = onto.extend(n);
    const std::size_t got = source_->fill(sent_ - prefix_bytes_, room);
    NEXAR_ASSERT(got <= n, "a source cannot fill more than its buffer");
    onto.shorten(n - got);
    source_pending = got == 0;
    sent_ += got;
    return got;
}

void Outlet::acknowledge(std::uint64_t offset, std::uint64_t limit) noexcept {
    NEXAR_ASSERT(offset <= sent_);
    acknowledged_ = std::max(acknowledged_, offset);
    limit_ = std::max(limit_, limit);
}

void Outlet::forget_source() noexcept {
    source_ = nullptr;
    regions_ = {};
    hash_.reset();
}

void Outlet::check_source() const {
    if (!hash_) return;
    const Hash again(XXH3_createState());
    XXH3_64bits_reset(again.get());
    auto rest = static_cast<std::size_t>(sent_ - std::min<std::uint64_t>(sent_, prefix_bytes_));
    for (std::size_t i = 0; rest != 0; ++i) {
        const port::ConstBytes piece = regions_[i].first(std::min(rest, regions_[i].size()));
        XXH3_64bits_update(again.get(), piece.data(), piece.size());
        rest -= piece.size();
    }
    NEXAR_ASSERT(XXH3_64bits_digest(again.get()) == XXH3_64bits_digest(hash_.get()),
                 "the memory of a source changed before it was released: a retransmission would "
                 "have sent other bytes");
}

}  // namespace nexar::sim
