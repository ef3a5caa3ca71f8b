#include "wire/reader.hpp"

#include "wire/text.hpp"

namespace nexar::wire {

namespace {

// An unknown optional field with this bit in its id must not be skipped.
constexpr std::uint16_t kCriticalBit = 0x8000;
constexpr std::size_t kOptionalHeadBytes = 4;

}  // namespace

void Reader::fail(const Fault& fault) {
    if (fault_.kind == FaultKind::none) fault_ = fault;
    rest_ = {};
    extension_ = {};
}

void Reader::finish() {
    skip_unknown_below(0x10000);
    if (!rest_.empty()) fail({FaultKind::trailing, {}, rest_.size()});
}

std::size_t Reader::take_length(std::string_view field, Bounds length) {
    std::uint16_t found = 0;
    number(field, found);
    if (fault_.kind != FaultKind::none) return 0;
    const Fault wrong = out_of_bounds(field, found, length, FaultKind::too_long);
    if (wrong.kind != FaultKind::none) {
        fail(wrong);
        return 0;
    }
    return found;
}

void Reader::text(std::string_view field, std::string& value, Bounds length) {
    const std::size_t size = take_length(field, length);
    const std::byte* at = take(field, size);
    if (at == nullptr || size == 0) return;
    value.resize(size);
    std::transform(at, at + size, value.begin(),
                   [](std::byte byte) { return static_cast<char>(byte); });
    if (const auto wrong = first_unprintable(value)) fail({FaultKind::bad_text, field, *wrong});
}

void Reader::bytes(std::string_view field, std::vector<std::byte>& value, std::size_t max) {
    const std::size_t size = take_length(field, {0, max});
    const std::byte* at = take(field, size);
    if (at != nullptr && size != 0) value.assign(at, at + size);
}

std::size_t Reader::list_count(std::string_view field, std::size_t max, std::size_t smallest) {
    std::uint16_t count = 0;
    number(field, count);
    if (count > max) {
        fail({FaultKind::too_many, field, count, max});
        return 0;
    }
    if (count * smallest > rest_.size()) {
        fail({FaultKind::truncated, field, rest_.size(), count * smallest});
        return 0;
    }
    return count;
}

std::optional<Reader::OptionalField> Reader::next_optional() {
    if (extension_.empty()) return std::nullopt;
    if (extension_.size() < kOptionalHeadBytes) {
        fail({FaultKind::truncated, "the head of an optional field", extension_.size(),
              kOptionalHeadBytes});
        return std::nullopt;
    }
    const OptionalField next{load<std::uint16_t>(extension_.data()),
                             load<std::uint16_t>(extension_.data() + 2)};
    if (next.id <= last_id_) {
        fail({FaultKind::field_order, {}, next.id, last_id_});
        return std::nullopt;
    }
    if (extension_.size() - kOptionalHeadBytes < next.length) {
        fail({FaultKind::truncated, "an optional field", extension_.size() - kOptionalHeadBytes,
              next.length});
        return std::nullopt;
    }
    return next;
}

void Reader::skip_unknown_below(std::uint32_t id) {
    for (auto next = next_optional(); next && next->id < id; next = next_optional()) {
        if ((next->id & kCriticalBit) != 0) {
            fail({FaultKind::unknown_critical, {}, next->id});
            return;
        }
        extension_ = extension_.subspan(kOptionalHeadBytes + next->length);
        last_id_ = next->id;
        ++skipped_fields_;
    }
}

const std::byte* Reader::take_optional(std::uint16_t id, std::string_view field,
                                       std::size_t length) {
    skip_unknown_below(id);
    const auto next = next_optional();
    if (!next || next->id != id) return nullptr;
    if (next->length != length) {
        fail({FaultKind::field_length, field, next->length, length});
        return nullptr;
    }
    const std::byte* at = extension_.data() + kOptionalHeadBytes;
    extension_ = extension_.subspan(kOptionalHeadBytes + length);
    last_id_ = id;
    return at;
}

}  // namespace nexar::wire
