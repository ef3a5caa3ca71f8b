#include "server.hpp"

#include <memory>

#include "api_side.hpp"
#include "contender.hpp"
#include "handshakes.hpp"
#include "quic_side.hpp"
#include "stream_side.hpp"
#include "timing.hpp"

namespace nexar::bench {

namespace {

/// Between two orders the client may calibrate, or measure something without the server.
constexpr Duration kBetweenOrders = std::chrono::seconds(60);

class Server {
public:
    Server(Control& control, const Party& party, MessageRing& ring)
        : control_(&control), party_(&party), ring_(&ring) {}

    void perform(const Order& order) {
        switch (order.task) {
            case Scenario::bulk:
                take_bulk(order, *accept(order.how));
                return;
            case Scenario::echo:
                echo(order, *accept(order.how));
                return;
            case Scenario::bulk_and_echo: {
                const auto side = accept_quic(order.how);
                side->answer(order.request_bytes);
                take_bulk(order, *side);
                return;
            }
            case Scenario::handshakes:
                accept_handshakes(*control_, *party_, order.messages);
                return;
            case Scenario::leave:
                return;
        }
    }

private:
    std::unique_ptr<QuicSide> accept_quic(const Contender& how) {
        auto side = std::make_unique<QuicSide>(QuicSide::Role::server, how, *party_, *ring_);
        control_->send(Listening{.port = side->port()});
        side->accept();
        return side;
    }

    std::unique_ptr<Side> accept(const Contender& how) {
        if (how.transport == Transport::quic) return accept_quic(how);
        if (how.transport == Transport::api) {
            auto side = std::make_unique<ApiSide>(true, how, *party_, *ring_);
            control_->send(Listening{.port = side->port()});
            side->accept();
            return side;
        }
        const TcpListener listener;
        control_->send(Listening{.port = listener.port()});
        auto tcp = listener.accept();
        if (how.transport == Transport::tls) {
            return std::make_unique<StreamSide>(accept_tls(std::move(tcp), how.waiting, *party_),
                                                *ring_);
        }
        tcp->start(how.waiting);
        return std::make_unique<StreamSide>(std::move(tcp), *ring_);
    }

    void take_bulk(const Order& order, Side& side) {
        ring_->clear();
        side.receive(order.warm_up);
        side.settle();
        ring_->check();
        ring_->clear();
        control_->send(Ready{});
        const double cpu_before = cpu_seconds();
        side.receive(order.messages);
        Outcome outcome{.finished_at = seconds_now(), .cpu_seconds = cpu_seconds() - cpu_before};
        side.settle();
        outcome.notes = side.notes();
        ring_->check();
        control_->send(outcome);
        side.stay();
    }

    void echo(const Order& order, Side& side) {
        control_->send(Ready{});
        side.echo(order.request_bytes);  // the warm-up
        side.echo(order.request_bytes);
        side.stay();
    }

    Control* control_;
    const Party* party_;
    MessageRing* ring_;
};

}  // namespace

void serve(Control& control, const Party& party, MessageRing& ring) try {
    Server server(control, party, ring);
    for (;;) {
        const auto order = control.receive<Order>(kBetweenOrders);
        if (order.task == Scenario::leave) return;
        server.perform(order);
    }
} catch (const std::exception& failure) {
    control.send_failure(failure.what());
    throw;
}

}  // namespace nexar::bench
