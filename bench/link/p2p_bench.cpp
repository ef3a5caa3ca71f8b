#include <array>

#include "api_pair.hpp"
#include "pair_program.hpp"

int main(int argc, char** argv) {
    using namespace nexar::bench;
    constexpr std::array kGroups{Group{"api_pingpong", bench_api_pingpong},
                                 Group{"api_stream", bench_api_stream},
                                 Group{"api_threads", bench_api_threads},
                                 Group{"late_wait", bench_late_wait}, Group{"rpc", bench_rpc}};
    two_cores();  // before this process is pinned to one
    return run_pair_program(
        argc, argv,
        "Speed of nexar's point-to-point messages and calls, compared with the QUIC link below",
        kGroups);
}
