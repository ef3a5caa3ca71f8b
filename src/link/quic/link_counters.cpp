#include "link/quic/link_counters.hpp"

#include <variant>

#include "base/try.hpp"

namespace nexar::quic {

namespace {

struct Row {
    const char* name;
    const char* unit;
    const char* help;
    std::variant<std::uint64_t EndpointCounts::*, std::uint64_t UdpCounts::*> value;
};

constexpr std::array<Row, LinkCounters::kCounters> kRows = {{
    {"quic_packets_in", "packets", "Packets that arrived", &EndpointCounts::packets_in},
    {"quic_malformed", "packets", "Packets that are not QUIC, or begin no connection",
     &EndpointCounts::malformed},
    {"quic_unknown", "packets", "Packets of connections that this node does not have",
     &EndpointCounts::unknown},
    {"quic_resets_sent", "packets", "Answers to those: stateless resets",
     &EndpointCounts::resets_sent},
    {"quic_version_answers", "packets", "Version negotiations sent",
     &EndpointCounts::version_answers},
    {"quic_retries", "packets", "Strangers asked to prove their address", &EndpointCounts::retries},
    {"quic_dropped", "packets", "First packets of strangers beyond the limits",
     &EndpointCounts::dropped},
    {"quic_bad_tokens", "packets", "Proofs of an address that were forged or too old",
     &EndpointCounts::bad_tokens},
    {"quic_accepted", "handshakes", "Handshakes begun for strangers", &EndpointCounts::accepted},
    {"quic_refused", "handshakes", "Handshakes of strangers that did not end in a link",
     &EndpointCounts::refused},
    {"quic_cut_off", "links", "Links that were cut because the peer broke a rule or a limit",
     &EndpointCounts::cut_off},
    {"udp_datagrams_out", "datagrams", "Datagrams given to the kernel", &UdpCounts::datagrams_out},
    {"udp_calls_out", "calls", "System calls that sent", &UdpCounts::calls_out},
    {"udp_datagrams_in", "datagrams", "Datagrams taken from the kernel", &UdpCounts::datagrams_in},
    {"udp_calls_in", "calls", "System calls that received something", &UdpCounts::calls_in},
    {"udp_too_large", "datagrams", "Datagrams that the interface is too narrow for",
     &UdpCounts::too_large},
    {"udp_gso_refused", "batches", "Batches that had to be sent one by one",
     &UdpCounts::gso_refused},
    {"udp_lost_in_send", "datagrams", "Datagrams that the kernel refused otherwise",
     &UdpCounts::lost_in_send},
}};

}  // namespace

Result<LinkCounters> LinkCounters::add_to(CounterRegistry& registry) {
    LinkCounters counters;
    for (std::size_t i = 0; i < kRows.size(); ++i) {
        NEXAR_TRY_VALUE(
            counter,
            registry.add({.name = kRows[i].name, .unit = kRows[i].unit, .help = kRows[i].help}));
        counters.counters_[i] = counter;
    }
    return counters;
}

void LinkCounters::publish(const EndpointCounts& endpoint, const UdpCounts& udp) noexcept {
    for (std::size_t i = 0; i < kRows.size(); ++i) {
        std::uint64_t value = 0;
        if (const auto* row = std::get_if<std::uint64_t EndpointCounts::*>(&kRows[i].value)) {
            value = endpoint.**row;
        } else {
            value = udp.*std::get<std::uint64_t UdpCounts::*>(kRows[i].value);
        }
        if (value != published_[i]) counters_[i]->add(value - published_[i]);
        published_[i] = value;
    }
}

}  // namespace nexar::quic
