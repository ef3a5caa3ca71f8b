#include "compute/byte_fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
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
      shift_(std::countr_zero(reducer_.element_size())),
      side_(side) {
    NEXAR_ASSERT(std::has_single_bit(reducer_.element_size()) &&
                 reducer_.element_size() <= kLargestElement);
    NEXAR_ASSERT(count <= std::numeric_limits<std::size_t>::max() / reducer_.element_size());
}

ByteFold::Cut ByteFold::cut(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept {
    const std::size_t size = reducer_.element_size();
    Cut cut;
    const auto into = static_cast<std::size_t>(offset & (size - 1));
    std::uint64_t element = offset >> shift_;
    if (into != 0) {
        const std::size_t taken = std::min(size - into, bytes.size());
        cut.head = {element++, into, bytes.first(taken)};
        bytes = bytes.subspan(taken);
    }
    const std::size_t elements = bytes.size() >> shift_;
    cut.first_whole = element;
    cut.whole = bytes.first(elements << shift_);
    cut.tail = {element + elements, 0, bytes.subspan(elements << shift_)};
    return cut;
}

Result<void> ByteFold::feed(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (offset > bytes_ || bytes.size() > bytes_ - offset) {
        return Error(
            Errc::invalid_argument,
            fmt::format("{} bytes at offset {} lie beyond the end of the array of {} bytes",
                        bytes.size(), offset, bytes_));
    }
    if (bytes.size() > bytes_ - bytes_done_) {
        return Error(Errc::invalid_argument,
                     fmt::format("{} bytes at offset {} repeat bytes that came before: only {} of "
                                 "{} are missing",
                                 bytes.size(), offset, bytes_ - bytes_done_, bytes_));
    }
    const Cut pieces = cut(offset, bytes);
    NEXAR_TRY(check(pieces));
    take(pieces.head);
    fold(pieces.first_whole, pieces.whole.data(), pieces.whole.size() >> shift_);
    take(pieces.tail);
    bytes_done_ += bytes.size();
    return {};
}

/// Everything that can be wrong with a piece is found here, before anything changes.
Result<void> ByteFold::check(const Cut& cut) const {
    std::size_t new_slots = 0;
    for (const Fragment* fragment : {&cut.head, &cut.tail}) {
        if (fragment->bytes.empty()) continue;
        const std::size_t slot = slot_of(fragment->element);
        if (slot == waiting_) {
            ++new_slots;
        } else if ((slots_[slot].present & fragment->mask()) != 0) {
            return Error(Errc::invalid_argument,
                         fmt::format("bytes {} to {} of element {} repeat bytes that came before",
                                     fragment->first, fragment->first + fragment->bytes.size() - 1,
                                     fragment->element));
        }
    }
    if (waiting_ + new_slots > kSlots) {
        return Error(Errc::limit_exceeded,
                     fmt::format("{} elements wait for missing bytes and at most {} can: feed the "
                                 "missing bytes, or cut pieces at multiples of {} bytes",
                                 waiting_, kSlots, reducer_.element_size()));
    }
    for (const Slot& slot : waiting()) {
        if (slot.element < cut.first_whole) continue;
        if (slot.element - cut.first_whole >= cut.whole.size() >> shift_) continue;
        return Error(
            Errc::invalid_argument,
            fmt::format("element {} comes whole, but some of its bytes came before", slot.element));
    }
    return {};
}

/// Where the element waits, or waiting_ if it does not.
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
        slot.element = fragment.element;
        slot.present = 0;
        ++waiting_;
    }
    std::memcpy(slot.bytes.data() + fragment.first, fragment.bytes.data(), fragment.bytes.size());
    slot.present |= fragment.mask();
    if (slot.present != (1U << reducer_.element_size()) - 1U) return;
    fold(slot.element, slot.bytes.data(), 1);
    slot = slots_[--waiting_];
}

void ByteFold::fold(std::uint64_t element, const std::byte* incoming, std::size_t count) const {
    if (count == 0) return;
    const std::size_t at = static_cast<std::size_t>(element) << shift_;
    const std::byte* local = local_ + at;
    if (side_ == Side::left) {
        reducer_.fold(out_ + at, incoming, local, count);
    } else {
        reducer_.fold(out_ + at, local, incoming, count);
    }
}

}  // namespace nexar::compute
