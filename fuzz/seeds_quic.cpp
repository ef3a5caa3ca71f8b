#include <chrono>

#include "quic_initial.hpp"
#include "seeds.hpp"
#include "support/quic_pair.hpp"

namespace nexar::fuzz {

namespace {

using namespace std::chrono_literals;
using sim::Datagram;
using testing::QuicPair;

constexpr std::byte kRaw{0};
constexpr std::byte kSealed{1};
constexpr std::byte kFilled{2};

Bytes with_mode(std::byte mode, const Bytes& rest) {
    Bytes input(1 + rest.size(), mode);
    std::ranges::copy(rest, input.begin() + 1);
    return input;
}

/// All packets of one direction for a handshake and some data.
std::vector<Bytes> packets_to(bool server, const testing::PairOptions& options) {
    QuicPair pair(options);
    std::vector<Bytes> seen;
    pair.net.tap = [&](const Datagram& datagram) {
        if ((datagram.to == pair.server_side.host().address()) == server) {
            seen.push_back(datagram.bytes);
        }
        return true;
    };
    pair.client_side.host().interface_limit = 1452;
    pair.server_side.host().interface_limit = 1452;
    NEXAR_ASSERT(pair.connect());
    pair.client().write(port::Lane::control, testing::bytes_of("hello"));
    pair.world.run_for(100ms);
    return seen;
}

void add_datagrams(const std::filesystem::path& root) {
    if (std::filesystem::exists(root / "quic_datagram")) return;
    const Corpus corpus(root, "quic_datagram");
    const auto to_server = packets_to(true, {});
    const Bytes& hello = to_server.front();
    const auto opened = open_initial(hello);
    NEXAR_ASSERT(opened.has_value());
    const Bytes& frames = *opened;
    corpus.add("client_initial", with_mode(kRaw, hello));
    corpus.add("client_hello", with_mode(kSealed, frames));
    // Without the padding, which the harness adds again.
    corpus.add("client_hello_short", with_mode(kSealed, {frames.begin(), frames.begin() + 330}));
    corpus.add("ping", with_mode(kSealed, {std::byte{1}}));
    corpus.add("close",
               with_mode(kSealed, {std::byte{0x1c}, std::byte{}, std::byte{}, std::byte{}}));
    corpus.add("acknowledgement", with_mode(kSealed, {std::byte{2}, std::byte{}, std::byte{},
                                                      std::byte{}, std::byte{}}));
    corpus.add("second_flight", with_mode(kRaw, to_server.at(1)));
    corpus.add("short_header", with_mode(kRaw, to_server.back()));
    corpus.add("server_initial", with_mode(kRaw, packets_to(false, {}).front()));

    testing::PairOptions busy;
    busy.gate.half_open_before_retry = 0;
    corpus.add("retry", with_mode(kRaw, packets_to(false, busy).front()));
    corpus.add("client_initial_with_token", with_mode(kRaw, packets_to(true, busy).at(1)));

    Bytes other = hello;
    other[1] = other[2] = other[3] = other[4] = std::byte{0x1a};
    other.resize(60);
    corpus.add("other_version", with_mode(kFilled, other));
    std::fill_n(other.begin() + 1, 4, std::byte{});
    corpus.add("version_negotiation", with_mode(kRaw, other));
    corpus.add("cut", with_mode(kRaw, {hello.begin(), hello.begin() + 1199}));
    corpus.add("nothing", with_mode(kRaw, {}));
}

void add_pairs(const std::filesystem::path& root) {
    const Corpus corpus(root, "quic_pair");
    constexpr unsigned kActs = 9;
    for (const bool established : {false, true}) {
        for (unsigned act = 0; act < kActs; ++act) {
            Bytes orders(1, established ? std::byte{1} : std::byte{0});
            for (unsigned i = 0; i < 12; ++i) {
                orders.push_back(static_cast<std::byte>(i % 3 == 0 ? 0 : act));
                orders.push_back(static_cast<std::byte>(i * 20 + 3));
                orders.push_back(static_cast<std::byte>(1U << i % 8));
            }
            corpus.add((established ? "link_" : "handshake_") + std::to_string(act), orders);
        }
    }
    // No packet passes before the handshake times out.
    Bytes all_lost(601, std::byte{1});
    all_lost.front() = std::byte{0};
    corpus.add("handshake_lost", all_lost);
}

}  // namespace

void add_quic(const std::filesystem::path& root) {
    add_datagrams(root);
    add_pairs(root);
}

}  // namespace nexar::fuzz
