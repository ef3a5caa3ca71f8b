#include "samples.hpp"

/// Samples of collective frames.
namespace nexar::wire::testing {

namespace {

constexpr std::uint64_t kAny = ~std::uint64_t{0};
constexpr std::uint32_t kAny32 = ~std::uint32_t{0};
constexpr ContextId kContext{0x9e3779b97f4a7c15};

}  // namespace

template <>
CollectiveHeader random_message<CollectiveHeader>(Random& random) {
    CollectiveHeader m;
    m.context = ContextId(random.number(0, kAny));
    m.sequence = Sequence(random.number(0, kAny));
    m.operation = random.number(0, kAny);
    m.message = static_cast<std::uint32_t>(random.number(0, kAny32));
    m.fingerprint = random.number(0, kAny);
    m.place = random.coin() ? PayloadPlace::stream : PayloadPlace::lane;
    m.size = m.place == PayloadPlace::stream ? random.number(1, kMaxByteCount)
                                             : random.number(0, kMaxEagerBytes);
    m.from_reserve = random.coin();
    return m;
}

template <>
CollectiveMismatch random_message<CollectiveMismatch>(Random& random) {
    return {.context = ContextId(random.number(0, kAny)),
            .operation = random.number(0, kAny),
            .expects = random.number(0, kMaxByteCount),
            .description = random.text(kMaxReportTextBytes)};
}

template <>
CollectiveAbort random_message<CollectiveAbort>(Random& random) {
    return {.context = ContextId(random.number(0, kAny)),
            .operation = random.number(0, kAny),
            .code = static_cast<Errc>(random.number(1, 0xffff)),
            .rank = Rank(static_cast<std::uint32_t>(random.number(0, kAny32))),
            .gone = random.coin(),
            .text = random.text(kMaxReportTextBytes)};
}

template <>
CollectiveHeader example<CollectiveHeader>() {
    return {.context = kContext,
            .sequence = Sequence(5),
            .operation = 3,
            .message = 2,
            .size = std::uint64_t{1} << 20,
            .fingerprint = 0x1122334455667788,
            .place = PayloadPlace::stream,
            .from_reserve = true};
}

template <>
CollectiveMismatch example<CollectiveMismatch>() {
    return {.context = kContext, .operation = 3, .expects = 20, .description = "all_to_all_v"};
}

template <>
CollectiveAbort example<CollectiveAbort>() {
    return {.context = kContext,
            .operation = 3,
            .code = Errc::timed_out,
            .rank = Rank(2),
            .gone = true,
            .text = "too late"};
}

}  // namespace nexar::wire::testing
