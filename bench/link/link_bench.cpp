#include <array>

#include "pair_program.hpp"

int main(int argc, char** argv) {
    using namespace nexar::bench;
    constexpr std::array kGroups{Group{"throughput", bench_throughput}, Group{"loss", bench_loss},
                                 Group{"pingpong", bench_pingpong},
                                 Group{"small_under_bulk", bench_small_under_bulk},
                                 Group{"handshakes", bench_handshakes}};
    return run_pair_program(
        argc, argv, "Speed of nexar's QUIC link, compared with TCP and TLS over TCP", kGroups);
}
