#include "wire/optional_fields.hpp"

#include "wire/scalar.hpp"

namespace nexar::wire {

namespace {

constexpr std::uint16_t kCriticalBit = 0x8000;
constexpr std::size_t kHeadBytes = 4;

}  // namespace

void OptionalFields::fail(const Fault& fault) {
    fault_->keep(fault);
    rest_ = {};
}

std::optional<OptionalFields::Head> OptionalFields::next() {
    if (rest_.empty()) return std::nullopt;
    if (rest_.size() < kHeadBytes) {
        fail({FaultKind::truncated, "the header of an optional field", rest_.size(), kHeadBytes});
        return std::nullopt;
    }
    const Head head{load<std::uint16_t>(rest_.data()), load<std::uint16_t>(rest_.data() + 2)};
    if (head.id <= last_id_) {
        fail({FaultKind::field_order, {}, head.id, last_id_});
        return std::nullopt;
    }
    if (rest_.size() - kHeadBytes < head.length) {
        fail({FaultKind::truncated, "an optional field", rest_.size() - kHeadBytes, head.length});
        return std::nullopt;
    }
    return head;
}

void OptionalFields::advance(const Head& past) {
    rest_ = rest_.subspan(kHeadBytes + past.length);
    last_id_ = past.id;
}

void OptionalFields::skip_below(std::uint32_t id) {
    for (auto head = next(); head && head->id < id; head = next()) {
        if ((head->id & kCriticalBit) != 0) {
            fail({FaultKind::unknown_critical, {}, head->id});
            return;
        }
        advance(*head);
        ++skipped_;
    }
}

const std::byte* OptionalFields::take(std::uint16_t id, std::string_view field,
                                      std::size_t length) {
    skip_below(id);
    const auto head = next();
    if (!head || head->id != id) return nullptr;
    if (head->length != length) {
        fail({FaultKind::field_length, field, head->length, length});
        return nullptr;
    }
    const std::byte* content = rest_.data() + kHeadBytes;
    advance(*head);
    return content;
}

}  // namespace nexar::wire
