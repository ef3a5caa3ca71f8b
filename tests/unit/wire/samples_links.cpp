// Samples of the messages about further links of a pair.

#include "samples.hpp"

namespace nexar::wire::testing {

namespace {

std::string random_kind(Random& random) {
    return "x" + random.text(kMaxLinkKindBytes - 1);
}

}  // namespace

template <>
LinkOffer random_message<LinkOffer>(Random& random) {
    return {.kind = random_kind(random), .invitation = random.bytes(kMaxLinkBytes)};
}

template <>
LinkOffer example<LinkOffer>() {
    return {.kind = "shm", .invitation = from_hex("de ad be ef")};
}

template <>
LinkRefusal random_message<LinkRefusal>(Random& random) {
    return {.kind = random_kind(random), .why = random.text(kMaxReportTextBytes)};
}

template <>
LinkRefusal example<LinkRefusal>() {
    return {.kind = "shm", .why = "the nodes run on different hosts"};
}

template <>
LinkReady random_message<LinkReady>(Random& random) {
    return {.kind = random_kind(random)};
}

template <>
LinkReady example<LinkReady>() {
    return {.kind = "shared-memory-x"};
}

template <>
Moved random_message<Moved>(Random& random) {
    return {.position = random.number(0, ~std::uint64_t{0})};
}

template <>
Moved example<Moved>() {
    return {.position = 4096};
}

}  // namespace nexar::wire::testing
