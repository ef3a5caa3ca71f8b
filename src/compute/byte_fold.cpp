#include "compute/byte_fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::compute {

ByteFold::ByteFold(Reducer reducer, std::byte* out, const std::byte* local, std::size_t count,
                   Side side)
    : reducer_(std::move(reducer)),
      out_(out),
      local_(local),
      bytes_(static_cast<std::uint64_t>(count) * reducer_.element_size()),
      side_(side) {
    NEXAR_ASSERT(count <= std::numeric_limits<std::size_t>::max() / reducer_.element_size());
}

ByteFold::Cut ByteFold::cut(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept {
    const std::size_t size = reducer_.element_size();
    Cut cut;
    const auto into = static_cast<std::size_t>(offset % size);
    std::uint64_t element = offset / size;
    if (into != 0) {
        const std::size_t taken = std::min(size - into, bytes.size());
        cut.head = {element++, into, bytes.first(taken)};
        bytes = bytes.subspan(taken);
    }
    const std::size_t elements = bytes.size() / size;
    cut.first_whole = element;
    cut.whole = bytes.first(elements * size);
    cut.tail = {element + elements, 0, bytes.subspan(elements * size)};
    return cut;
}

Result<void> ByteFold::feed(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (offset > bytes_ || bytes.size() > bytes_ - offset) {
        return Error(Errc::invalid_argument,
                     fmt::format("{} bytes at offset {} exceed the array of {} bytes", bytes.size(),
                                 offset, bytes_));
    }
    if (bytes.size() > bytes_ - bytes_done_) {
        return Error(
            Errc::invalid_argument,
            fmt::format("{} bytes at offset {} repeat earlier bytes: only {} of {} are missing",
                        bytes.size(), offset, bytes_ - bytes_done_, bytes_));
    }
    const Cut pieces = cut(offset, bytes);
    NEXAR_TRY(check(pieces));
    take(pieces.head);
    fold(pieces.first_whole, pieces.whole.data(), pieces.whole.size() / reducer_.element_size());
    take(pieces.tail);
    bytes_done_ += bytes.size();
    return {};
}

/// Detects every fault of a piece before anything changes.
Result<void> ByteFold::check(const Cut& cut) const {
    std::size_t new_slots = 0;
    for (const Fragment* fragment : {&cut.head, &cut.tail}) {
        if (fragment->bytes.empty()) continue;
        const std::size_t slot = slot_of(fragment->element);
        if (slot == waiting_) {
            ++new_slots;
        } else if (slots_[slot].repeats(*fragment)) {
            return Error(
                Errc::invalid_argument,
                fmt::format("bytes {} to {} of element {} repeat earlier bytes", fragment->first,
                            fragment->first + fragment->bytes.size() - 1, fragment->element));
        }
    }
    if (waiting_ + new_slots > kSlots) {
        return Error(Errc::limit_exceeded,
                     fmt::format("{} incomplete elements exceed the limit of {}; feed the missing "
                                 "bytes, or cut pieces at multiples of {} bytes",
                                 waiting_, kSlots, reducer_.element_size()));
    }
    for (const Slot& slot : waiting()) {
        if (slot.element() < cut.first_whole) continue;
        if (slot.element() - cut.first_whole >= cut.whole.size() / reducer_.element_size())
            continue;
        return Error(
            Errc::invalid_argument,
            fmt::format(
                "element {} is complete in this piece, but some of its bytes were already fed",
                slot.element()));
    }
    return {};
}

/// The slot of an incomplete element, or waiting_ if it has none.
std::size_t ByteFold::slot_of(std::uint64_t element) const noexcept {
    const auto at = std::ranges::find(waiting(), element, &Slot::element);
    return static_cast<std::size_t>(at - waiting().begin());
}

void ByteFold::take(const Fragment& fragment) {
    if (fragment.bytes.empty()) return;
    const std::size_t at = slot_of(fragment.element);
    NEXAR_ASSERT(at < kSlots, "check() counted the slots");
    Slot& slot = slots_[at];
    if (at == waiting_) {
        slot.begin(fragment.element, reducer_.element_size());
        ++waiting_;
    }
    if (!slot.take(fragment)) return;
    fold(slot.element(), slot.bytes(), 1);
    std::swap(slot, slots_[--waiting_]);
}

void ByteFold::Slot::begin(std::uint64_t element, std::size_t size) {
    element_ = element;
    missing_ = size;
    present_ = 0;
    if (size <= kLargestInPlace) return;
    if (!large_) large_ = std::make_unique<Large>();
    large_->bytes.resize(size);
    large_->present.assign(size, false);
}

namespace {

std::uint32_t mask(std::size_t first, std::size_t count) {
    return ((1U << count) - 1U) << first;
}

}  // namespace

bool ByteFold::Slot::repeats(const Fragment& fragment) const noexcept {
    const std::size_t count = fragment.bytes.size();
    if (!large_) return (present_ & mask(fragment.first, count)) != 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (large_->present[fragment.first + i]) return true;
    }
    return false;
}

bool ByteFold::Slot::take(const Fragment& fragment) {
    const std::size_t count = fragment.bytes.size();
    std::byte* const bytes = large_ ? large_->bytes.data() : bytes_.data();
    std::memcpy(bytes + fragment.first, fragment.bytes.data(), count);
    if (!large_) {
        present_ |= mask(fragment.first, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) large_->present[fragment.first + i] = true;
    }
    missing_ -= count;
    return missing_ == 0;
}

void ByteFold::fold(std::uint64_t element, const std::byte* incoming, std::size_t count) const {
    if (count == 0) return;
    const std::size_t at = static_cast<std::size_t>(element) * reducer_.element_size();
    const std::byte* local = local_ + at;
    if (side_ == Side::left) {
        reducer_.fold(out_ + at, incoming, local, count);
    } else {
        reducer_.fold(out_ + at, local, incoming, count);
    }
}

}  // namespace nexar::compute
