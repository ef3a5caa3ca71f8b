#pragma once

#include <poll.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/udp_fault/udp_socket.hpp"

namespace nexar::udp_fault {

/// A program at one end of the proxy that sends and receives texts.
class UdpHost {
public:
    struct Message {
        std::string text{};
        Address from{};
        int ecn = 0;
    };

    explicit UdpHost(const Address& local = Address::loopback_v4())
        : socket_(*UdpSocket::bind(local)) {}

    const Address& address() const noexcept { return socket_.local(); }
    int descriptor() const noexcept { return socket_.descriptor(); }

    void send(const Address& to, std::string_view text, std::uint8_t ecn = 0) {
        const Parcel parcel{.bytes = std::as_bytes(std::span(text)), .peer = to, .ecn = ecn};
        if (socket_.send({&parcel, 1}) != 1) throw system_failure("send");
    }

    /// The next message, or nullopt after the timeout. The default is far more than a loaded
    /// machine needs.
    std::optional<Message> receive(std::chrono::milliseconds within = std::chrono::seconds(20)) {
        if (taken_ == messages_.size()) refill(within);
        if (taken_ == messages_.size()) return {};
        return std::move(messages_[taken_++]);
    }

    std::string receive_text() {
        const auto message = receive();
        return message ? message->text : "(nothing arrived)";
    }

private:
    void refill(std::chrono::milliseconds within) {
        pollfd ready{.fd = socket_.descriptor(), .events = POLLIN, .revents = 0};
        messages_.clear();
        taken_ = 0;
        if (::poll(&ready, 1, static_cast<int>(within.count())) <= 0) return;
        if (!socket_.receive(batch_)) return;
        for (const Parcel& parcel : batch_.parcels()) {
            Message& message = messages_.emplace_back();
            message.text.assign(reinterpret_cast<const char*>(parcel.bytes.data()),
                                parcel.bytes.size());
            message.from = parcel.peer;
            message.ecn = parcel.ecn;
        }
    }

    UdpSocket socket_;
    ReceiveBatch batch_;
    std::vector<Message> messages_;
    std::size_t taken_ = 0;
};

}  // namespace nexar::udp_fault
