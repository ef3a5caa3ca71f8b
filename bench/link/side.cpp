#include "side.hpp"

#include "timing.hpp"

namespace nexar::bench {

std::vector<double> time_requests(double seconds,
                                  const std::function<void(std::byte mark)>& exchange) {
    std::vector<double> times;
    const double end = seconds_now() + seconds;
    bool last = false;
    while (!last) {
        const double start = seconds_now();
        last = start >= end;
        exchange(last ? kLastOne : kMoreFollow);
        times.push_back(seconds_now() - start);
    }
    return times;
}

Address loopback(std::uint16_t port) {
    return Address::parse("127.0.0.1:0").value().with_port(port);
}

}  // namespace nexar::bench
