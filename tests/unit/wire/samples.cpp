#include "samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "support/seed.hpp"

namespace nexar::wire::testing {

namespace {

constexpr std::uint64_t kAny = ~std::uint64_t{0};
constexpr ContextId kContext{0x9e3779b97f4a7c15};

template <class Message>
Message random_header(Random& random, std::uint64_t min_size, std::uint64_t max_size) {
    Message m;
    m.context = ContextId(random.number(0, kAny));
    m.sequence = Sequence(random.number(0, kAny));
    m.tag = Tag(random.number(0, kAny));
    m.size = random.number(min_size, max_size);
    m.synchronous = random.coin();
    m.from_reserve = random.coin();
    return m;
}

std::chrono::nanoseconds random_time(Random& random) {
    return std::chrono::nanoseconds(random.number(0, std::uint64_t{1} << 63) >> 1);
}

void random_payload(Random& random, std::uint64_t& size, PayloadPlace& place) {
    place = random.coin() ? PayloadPlace::stream : PayloadPlace::lane;
    size = place == PayloadPlace::stream ? random.number(1, kMaxByteCount)
                                         : random.number(0, kMaxEagerBytes);
}

}  // namespace

Random::Random() : engine_(test_seed(20240229)) {}

std::uint64_t Random::below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine_);
}

std::uint64_t Random::number(std::uint64_t min, std::uint64_t max) {
    const std::uint64_t range = max - min;
    switch (below(4)) {
        case 0:
            return min + std::min(range, below(4));
        case 1:
            return max - std::min(range, below(4));
        case 2:  // every bit length
            return min + std::min(range, engine_() >> below(64));
        default:
            return min + upto(range);
    }
}

std::string Random::text(std::size_t max_bytes) {
    static constexpr std::array<std::string_view, 12> kCharacters{"a",
                                                                  "Z",
                                                                  " ",
                                                                  "~",
                                                                  "\xc2\xa0",
                                                                  "\xc3\xa9",
                                                                  "\xdf\xbf",
                                                                  "\xe2\x82\xac",
                                                                  "\xe2\x81\xaa",
                                                                  "\xef\xbf\xbd",
                                                                  "\xf0\x90\x80\x80",
                                                                  "\xf4\x8f\xbf\xbf"};
    const std::size_t wanted = number(0, max_bytes);
    std::string text;
    while (text.size() < wanted) {
        const std::string_view next = kCharacters[below(kCharacters.size())];
        if (text.size() + next.size() > max_bytes) break;
        text += next;
    }
    return text;
}

Bytes Random::bytes(std::size_t max_bytes) {
    Bytes bytes(number(0, max_bytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(below(256));
    return bytes;
}

template <>
EagerHeader random_message<EagerHeader>(Random& random) {
    return random_header<EagerHeader>(random, 0, kMaxEagerBytes);
}

template <>
BulkHeader random_message<BulkHeader>(Random& random) {
    auto m = random_header<BulkHeader>(random, 1, kMaxByteCount);
    m.awaits_grant = random.coin();
    return m;
}

template <>
Hello random_message<Hello>(Random& random) {
    Hello m;
    m.min_version = static_cast<std::uint8_t>(random.number(1, 255));
    m.max_version = static_cast<std::uint8_t>(random.number(m.min_version, 255));
    m.features = random.number(0, kAny);
    m.epoch = Epoch(random.number(0, kAny));
    m.software = random.text(kMaxSoftwareBytes);
    if (random.coin()) m.wanted_rank = Rank(static_cast<std::uint32_t>(random.number(0, ~0U)));
    if (random.coin()) m.host_id[random.below(16)] = std::byte{1};
    return m;
}

template <>
Welcome random_message<Welcome>(Random& random) {
    Welcome m;
    m.version = static_cast<std::uint8_t>(random.number(1, 255));
    m.features = random.number(0, kAny);
    m.epoch = Epoch(random.number(0, kAny));
    m.world_size = static_cast<std::uint32_t>(random.number(1, kMaxWorldSize));
    m.rank = Rank(static_cast<std::uint32_t>(random.number(0, m.world_size - 1)));
    m.payload_credit_bytes = random.number(0, kMaxByteCount);
    m.header_credits = static_cast<std::uint32_t>(random.number(0, ~0U));
    const std::size_t settings = random.below(64) == 0 ? kMaxSettings : random.below(8);
    for (std::size_t i = 0; i < settings; ++i) {
        std::string name = random.text(kMaxSettingNameBytes - 1);
        name += 's';  // never empty
        m.settings.push_back(
            {name, random.text(kMaxSettingValueBytes), random.text(kMaxSettingOriginBytes)});
    }
    std::ranges::sort(m.settings, {}, &Setting::name);
    const auto same = std::ranges::unique(m.settings, {}, &Setting::name);
    m.settings.erase(same.begin(), same.end());
    return m;
}

template <>
ErrorReport random_message<ErrorReport>(Random& random) {
    ErrorReport m;
    m.code = static_cast<Errc>(random.number(1, 0xffff));
    m.epoch = Epoch(random.number(0, kAny));
    m.text = random.text(kMaxReportTextBytes);
    if (random.coin()) m.rank = Rank(static_cast<std::uint32_t>(random.number(0, ~0U)));
    if (random.coin()) m.context = ContextId(random.number(0, kAny));
    if (random.coin()) m.sequence = Sequence(random.number(0, kAny));
    return m;
}

template <>
Heartbeat random_message<Heartbeat>(Random& random) {
    return {.epoch = Epoch(random.number(0, kAny)),
            .number = random.number(0, kAny),
            .sent_at = random_time(random),
            .echo = random_time(random),
            .echo_delay = random_time(random),
            .counter = random.number(0, kAny),
            .wants_answer = random.coin()};
}

template <>
Credit random_message<Credit>(Random& random) {
    Credit m;
    m.pool = static_cast<CreditPool>(random.number(1, 4));
    if (m.pool != CreditPool::shared) m.context = ContextId(random.number(0, kAny));
    m.payload_bytes = random.number(0, kMaxByteCount);
    m.headers = static_cast<std::uint32_t>(random.number(m.payload_bytes == 0 ? 1 : 0, ~0U));
    return m;
}

template <>
Grant random_message<Grant>(Random& random) {
    return {.context = ContextId(random.number(0, kAny)),
            .sequence = Sequence(random.number(0, kAny)),
            .window_bytes = random.number(0, kMaxByteCount),
            .link = random.bytes(kMaxLinkBytes)};
}

template <>
Withdraw random_message<Withdraw>(Random& random) {
    return {.context = ContextId(random.number(0, kAny)),
            .sequence = Sequence(random.number(0, kAny)),
            .step = static_cast<WithdrawStep>(random.number(1, 3))};
}

template <>
Confirm random_message<Confirm>(Random& random) {
    return {.epoch = Epoch(random.number(0, kAny))};
}

template <>
Abort random_message<Abort>(Random& random) {
    return {.code = static_cast<std::int32_t>(random.number(0, ~0U)),
            .rank = Rank(static_cast<std::uint32_t>(random.number(0, ~0U))),
            .text = random.text(kMaxReportTextBytes)};
}

template <>
ContextBegin random_message<ContextBegin>(Random& random) {
    const auto size = static_cast<std::uint32_t>(random.number(1, kMaxWorldSize));
    return {.context = ContextId(random.number(0, kAny)),
            .origin = {.parent = ContextId(random.number(0, kAny)),
                       .creation = random.number(0, kAny),
                       .colour = random.number(0, kAny),
                       .epoch = Epoch(random.number(0, kAny))},
            .rank = Rank(static_cast<std::uint32_t>(random.number(0, size - 1))),
            .size = size};
}

template <>
ContextEnd random_message<ContextEnd>(Random& random) {
    return {.context = ContextId(random.number(0, kAny)), .collectives = random.number(0, kAny)};
}

template <>
Request random_message<Request>(Random& random) {
    Request m;
    m.call = CallId(random.number(0, kAny));
    m.time_left = random_time(random);
    m.name = random.text(kMaxFunctionNameBytes);
    if (m.name.empty()) m.function = static_cast<std::uint16_t>(random.number(0, 0xffff));
    random_payload(random, m.size, m.place);
    return m;
}

template <>
Response random_message<Response>(Random& random) {
    Response m;
    m.call = CallId(random.number(0, kAny));
    m.code = static_cast<Errc>(random.coin() ? 0 : random.number(1, 0xffff));
    if (m.code == Errc{}) {
        random_payload(random, m.size, m.place);
    } else {
        m.text = random.text(kMaxReportTextBytes);
    }
    return m;
}

template <>
Cancel random_message<Cancel>(Random& random) {
    return {.call = CallId(random.number(0, kAny))};
}

template <>
EagerHeader example<EagerHeader>() {
    return {{.context = kContext,
             .sequence = Sequence(7),
             .tag = Tag(42),
             .size = 1000,
             .synchronous = true}};
}

template <>
BulkHeader example<BulkHeader>() {
    return {{.context = kContext,
             .sequence = Sequence(8),
             .tag = Tag(42),
             .size = std::uint64_t{64} << 20,
             .awaits_grant = true}};
}

template <>
Hello example<Hello>() {
    Hello m{.features = 5, .epoch = Epoch(3), .software = "nexar 0.1.0", .wanted_rank = Rank(4)};
    for (std::size_t i = 0; i < m.host_id.size(); ++i) {
        m.host_id[i] = static_cast<std::byte>(i * 0x11);
    }
    return m;
}

template <>
Welcome example<Welcome>() {
    return {
        .features = 1,
        .epoch = Epoch(4),
        .rank = Rank(2),
        .world_size = 3,
        .payload_credit_bytes = std::uint64_t{1} << 20,
        .header_credits = 16384,
        .settings = {{"eager_limit", "16KiB", "default"}, {"heartbeat", "100ms", "--heartbeat"}}};
}

template <>
ErrorReport example<ErrorReport>() {
    return {.code = Errc::malformed,
            .epoch = Epoch(3),
            .text = "bad frame",
            .rank = Rank(1),
            .context = kContext,
            .sequence = Sequence(7)};
}

template <>
Heartbeat example<Heartbeat>() {
    using namespace std::chrono_literals;
    return {.epoch = Epoch(3),
            .number = 12,
            .sent_at = 5s,
            .echo = 4999ms,
            .echo_delay = 250us,
            .counter = 2,
            .wants_answer = true};
}

template <>
Credit example<Credit>() {
    return {.pool = CreditPool::communicator,
            .context = kContext,
            .payload_bytes = 65536,
            .headers = 4};
}

template <>
Grant example<Grant>() {
    return {.context = kContext,
            .sequence = Sequence(8),
            .window_bytes = std::uint64_t{1} << 20,
            .link = from_hex("de ad be ef")};
}

template <>
Withdraw example<Withdraw>() {
    return {.context = kContext, .sequence = Sequence(8), .step = WithdrawStep::done};
}

template <>
Confirm example<Confirm>() {
    return {.epoch = Epoch(4)};
}

template <>
Abort example<Abort>() {
    return {.code = -3, .rank = Rank(2), .text = "the input has no header"};
}

template <>
ContextBegin example<ContextBegin>() {
    return {.context = kContext,
            .origin = {.parent = ContextId(5), .creation = 2, .colour = 1, .epoch = {}},
            .rank = Rank(3),
            .size = 4};
}

template <>
ContextEnd example<ContextEnd>() {
    return {.context = kContext, .collectives = 7};
}

template <>
Request example<Request>() {
    return {.call = CallId(9),
            .time_left = std::chrono::seconds(2),
            .function = 0,
            .name = "sum",
            .size = std::uint64_t{1} << 20,
            .place = PayloadPlace::stream};
}

template <>
Response example<Response>() {
    return {.call = CallId(9), .code = Errc::timed_out, .text = "too late"};
}

template <>
Cancel example<Cancel>() {
    return {.call = CallId(9)};
}

Bytes from_hex(std::string_view hex) {
    std::string digits;
    std::ranges::copy_if(hex, std::back_inserter(digits), [](char c) { return c != ' '; });
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string hex;
    for (const std::byte byte : bytes) hex += fmt::format("{:02x} ", static_cast<unsigned>(byte));
    return hex;
}

Bytes frame(FrameType type, const Bytes& body, std::size_t extension_bytes) {
    Bytes bytes{std::byte{kProtocolVersion}, static_cast<std::byte>(type)};
    for (unsigned i = 0; i < 2; ++i) {
        bytes.push_back(static_cast<std::byte>(extension_bytes >> (8 * i)));
    }
    for (unsigned i = 0; i < 4; ++i)
        bytes.push_back(static_cast<std::byte>(body.size() >> (8 * i)));
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
}

}  // namespace nexar::wire::testing
