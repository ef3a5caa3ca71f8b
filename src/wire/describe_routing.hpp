#pragma once

#include <algorithm>
#include <functional>

#include "wire/describe_seed.hpp"
#include "wire/routing_messages.hpp"

/// The layouts of wire/routing_messages.hpp, written as in wire/describe.hpp.
namespace nexar::wire {

/// The fields of an envelope, without the packet.
template <class Io>
void describe_envelope(Io& io, auto& m) {
    io.number("source", m.source, {0, kMaxRank});
    io.number("target", m.target, {0, kMaxRank});
    io.number("hops", m.hops, {1, kMaxHops});
    io.number("part", m.part, {kWholePacket, kLastPart});
    io.number("choice", m.choice);
    io.number("number", m.number);
}

template <class Io>
void describe_envelope_rules(Io& io, const auto& m) {
    io.rule([&] { return m.source != m.target; }, "target", m.target.value(),
            "it must not be the source");
}

template <class Io>
void describe(Io& io, Of<EnvelopeFrame> auto& m) {
    describe_envelope(io, m);
    io.rest("packet", m.packet, {1, kMaxPacketBytes});
    describe_envelope_rules(io, m);
}

template <class Io>
void describe(Io& io, Of<LinkState> auto& m) {
    io.number("origin", m.origin, {0, kMaxRank});
    io.number("incarnation", m.incarnation);
    io.number("epoch", m.epoch, {1, ~std::uint64_t{0}});
    io.number("version", m.version, {1, ~std::uint64_t{0}});
    io.list("number of broken links", m.down, kMaxDownLinks);
    io.array("key", m.key);
    io.array("signature", m.signature);
    io.rule([&] { return detail::strictly_ascends(m.down, std::identity{}); },
            "number of broken links", m.down.size(), "their ranks must strictly ascend");
    io.rule([&] { return !std::ranges::binary_search(m.down, m.origin); }, "origin",
            m.origin.value(), "it must not be the other end of a broken link");
}

template <class Io>
void describe(Io& io, Of<PathRequest> auto& m) {
    io.boolean("direct", m.direct);
}

}  // namespace nexar::wire
