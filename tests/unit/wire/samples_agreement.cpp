#include "samples.hpp"

/// Samples of the messages with which the members of a communicator agree.
namespace nexar::wire::testing {

namespace {

constexpr std::uint64_t kAnyWord = ~std::uint64_t{0};

std::vector<Rank> random_ranks(Random& random) {
    std::vector<Rank> ranks;
    std::uint64_t rank = 0;
    for (std::uint64_t n = random.number(0, 40); n > 0; --n) {
        rank += random.number(1, kMaxRank / 50);
        ranks.emplace_back(static_cast<std::uint32_t>(rank));
    }
    return ranks;
}

AgreementWords random_words(Random& random) {
    AgreementWords words{};
    for (std::uint64_t& word : words) word = random.number(0, kAnyWord);
    return words;
}

AgreementCall random_call(Random& random) {
    return {.kind = static_cast<AgreementKind>(random.number(1, 5)),
            .flags = random.number(0, kAnyWord),
            .fingerprint = random.number(0, kAnyWord),
            .creations = random.number(0, kAnyWord),
            .newest = Epoch(random.number(0, kAnyWord)),
            .words = random_words(random),
            .excluded = random_ranks(random)};
}

AgreementValue random_value(Random& random, bool may_fail) {
    AgreementValue value{.flags = random.number(0, kAnyWord),
                         .fingerprint = random.number(0, kAnyWord),
                         .creation = random.number(0, kAnyWord),
                         .epoch = Epoch(random.number(0, kAnyWord)),
                         .words = random_words(random),
                         .lost = random_ranks(random)};
    if (may_fail && random.coin()) {
        value.code = static_cast<Errc>(random.number(1, 0xffff));
        value.text = random.text(kMaxReportTextBytes);
    }
    return value;
}

}  // namespace

template <>
Agreement random_message<Agreement>(Random& random) {
    Agreement m{.step = static_cast<AgreementStep>(random.number(1, 6)),
                .context = ContextId(random.number(0, kAnyWord)),
                .number = random.number(0, kAnyWord),
                .epoch = Epoch(random.number(0, kAnyWord))};
    switch (m.step) {
        case AgreementStep::state:
            m.call.push_back(random_call(random));
            if (random.coin()) {
                m.stored_in = Epoch(random.number(0, m.epoch.value()));
                m.value.push_back(random_value(random, false));
            }
            break;
        case AgreementStep::proposal:
        case AgreementStep::decision:
            m.value.push_back(random_value(random, m.step == AgreementStep::decision));
            break;
        case AgreementStep::waiting:
            m.missing = random_ranks(random);
            break;
        case AgreementStep::stored:
        case AgreementStep::question:
            break;
    }
    return m;
}

template <>
Agreement example<Agreement>() {
    return {.step = AgreementStep::state,
            .context = ContextId(0x9e3779b97f4a7c15),
            .number = 2,
            .epoch = Epoch(5),
            .call = {{.kind = AgreementKind::exclude,
                      .flags = 7,
                      .fingerprint = 0xfeedfacecafebeef,
                      .creations = 3,
                      .newest = Epoch(6),
                      .words = {1, 2, 3, 4},
                      .excluded = {Rank(1)}}},
            .stored_in = Epoch(4),
            .value = {{.flags = 5,
                       .fingerprint = 0xfeedfacecafebeef,
                       .creation = 8,
                       .epoch = Epoch(4),
                       .words = {9, 10, 11, 12},
                       .lost = {Rank(0), Rank(3)}}}};
}

}  // namespace nexar::wire::testing
