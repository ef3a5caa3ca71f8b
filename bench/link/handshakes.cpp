#include "handshakes.hpp"

#include <memory>
#include <optional>

#include "base/address.hpp"
#include "base/buffer_pool.hpp"
#include "contender.hpp"
#include "link/quic/udp_carrier.hpp"
#include "link_loop.hpp"
#include "timing.hpp"

namespace nexar::bench {

namespace {

/// A carrier for many short-lived links.
class Hall {
public:
    explicit Hall(std::shared_ptr<const security::Credentials> credentials)
        : pool_(PoolProfile::training()) {
        quic::EndpointOptions options;
        options.credentials = std::move(credentials);
        // Measure the cost of a handshake, not the rate limit for strangers.
        constexpr double kNoLimit = 1e9;
        options.gate.new_per_second_before_retry = kNoLimit;
        options.gate.per_network_per_second = kNoLimit;
        options.gate.per_network_burst = kNoLimit;
        carrier_ =
            quic::UdpCarrier::open(Address::parse("127.0.0.1:0").value(), pool_, std::move(options))
                .value();
        loop_ = std::make_unique<LinkLoop>(*carrier_, Waiting::sleeping,
                                           [this](const port::LinkEvent& event) { take(event); });
    }

    quic::UdpCarrier& carrier() noexcept { return *carrier_; }
    LinkLoop& loop() noexcept { return *loop_; }
    port::Link* link() const noexcept { return link_; }
    std::size_t ups() const noexcept { return ups_; }
    std::size_t downs() const noexcept { return downs_; }

private:
    void take(const port::LinkEvent& event) {
        if (const auto* up = std::get_if<port::Up>(&event.what)) {
            link_ = up->link;
            ++ups_;
        } else if (const auto* down = std::get_if<port::Down>(&event.what)) {
            if (down->reason.code() != Errc::link_closed) throw Error(down->reason);
            ++downs_;
            carrier_->forget(event.link);
        } else if (const auto* refused = std::get_if<port::Refused>(&event.what)) {
            throw Error(refused->reason);
        }
    }

    BufferPool pool_;
    std::unique_ptr<quic::UdpCarrier> carrier_;
    std::unique_ptr<LinkLoop> loop_;
    port::Link* link_ = nullptr;
    std::size_t ups_ = 0;
    std::size_t downs_ = 0;
};

}  // namespace

void accept_handshakes(Control& control, const Party& party, std::size_t count) {
    Hall hall(party.server);
    control.send(Listening{.port = hall.carrier().local().port()});
    hall.loop().run([&] { return hall.downs() == count; }, "accepting handshakes");
}

std::vector<double> dial_handshakes(Control& control, const Party& party, std::size_t count) {
    Hall hall(party.client);
    const Address server = hall.carrier().local().with_port(control.receive<Listening>().port);
    std::vector<double> times;
    for (std::size_t i = 0; i < count; ++i) {
        const double start = seconds_now();
        hall.carrier()
            .endpoint()
            .dial(hall.loop().now(), server, {.cluster = party.cluster, .node = {}})
            .value();
        hall.loop().flush();
        hall.loop().run([&] { return hall.ups() > i; }, "a handshake");
        times.push_back(seconds_now() - start);
        hall.link()->close("the measurement is over");
        hall.loop().run([&] { return hall.downs() > i; }, "closing a link");
    }
    return times;
}

}  // namespace nexar::bench
