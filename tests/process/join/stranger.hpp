#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/time.hpp"
#include "link/quic/udp_carrier.hpp"
#include "runtime/join/seed_lane.hpp"
#include "security/join_string.hpp"
#include "security/key_pair.hpp"
#include "security/signing_request.hpp"

namespace nexar::testing {

/// An attacker that dials a seed or a node and sends anything. Driven by the test.
class Stranger {
public:
    explicit Stranger(std::shared_ptr<const security::Credentials> credentials = {})
        : pool_(PoolProfile::training()) {
        quic::EndpointOptions options;
        options.credentials = std::move(credentials);
        carrier_ =
            quic::UdpCarrier::open(Address::parse("127.0.0.1:0").value(), pool_, std::move(options))
                .value();
    }

    /// Dials without an expected peer, as no node does: accepts any member that answers.
    port::LinkId dial_anyone(const Address& to, const ClusterId& cluster) {
        return carrier_->endpoint().dial(now(), to, {.cluster = cluster, .node = {}}).value();
    }
    TimePoint now() const noexcept { return clock_.now(); }

    /// The history of a link of this stranger.
    struct Story {
        port::Link* link = nullptr;  // while it is up
        bool was_up = false;
        std::optional<Error> down{};
    };
    const Story& story(port::LinkId id) { return stories_[id]; }

    port::LinkId dial(const port::DialTarget& target) {
        return carrier_->dial(now(), target).value();
    }
    port::LinkId dial_as_joiner(const Address& seed,
                                std::optional<security::PublicKeyHash> ca = std::nullopt) {
        return dial({.address = seed, .peer = port::JoinTarget{.ca = ca}});
    }

    /// Drives until `done`; returns false if that takes too long.
    bool run_until(const std::function<bool()>& done, Duration within = std::chrono::seconds(20)) {
        const TimePoint deadline = now() + within;
        while (!done()) {
            if (now() > deadline) return false;
            turn();
        }
        return true;
    }

    void turn() {
        carrier_->on_ready(now());
        carrier_->flush(now());
        while (const auto event = carrier_->poll_event()) {
            Story& told = stories_[event->link];
            if (const auto* up = std::get_if<port::Up>(&event->what)) {
                told.link = up->link;
                told.was_up = true;
            } else if (const auto* down = std::get_if<port::Down>(&event->what)) {
                told.link = nullptr;
                told.down = down->reason;
                carrier_->forget(event->link);
            }
        }
        carrier_->flush(now());
    }

private:
    SteadyClock clock_;
    BufferPool pool_;
    std::unique_ptr<quic::UdpCarrier> carrier_;
    std::map<port::LinkId, Story> stories_;
};

/// A stranger on the seed lane of a link that is up: collects what it receives.
class Conversation {
public:
    explicit Conversation(port::Link& link)
        : link_(&link), lane_(link, [this](const wire::FrameHeader& header, port::ConstBytes body) {
              types.push_back(header.type);
              if (header.type == wire::FrameType::error_report) {
                  report = wire::decode_body<wire::ErrorReport>(header, body)->message;
              }
              if (header.type == wire::FrameType::admission) {
                  admission = wire::decode_body<wire::Admission>(header, body)->message;
              }
              return Result<void>{};
          }) {}

    template <class Message>
    void say(const Message& message) {
        lane_.send(message);
    }

    std::array<std::byte, runtime::kBindingBytes> binding() const {
        return runtime::binding(*link_).value();
    }

    wire::JoinRequest request(const security::KeyPair& key,
                              std::span<const std::byte, runtime::kBindingBytes> bound,
                              const security::JoinString* join = nullptr) const {
        wire::JoinRequest made{
            .signing_request = security::SigningRequest::create(key, bound).value().der(),
            .host = "stranger"};
        if (join != nullptr) {
            made.token = join->token.bytes();
            join->secret.reveal([&](std::span<const std::byte> bytes) {
                std::ranges::copy(bytes, made.token_secret.begin());
            });
        }
        return made;
    }

    std::vector<wire::FrameType> types{};
    std::optional<wire::ErrorReport> report{};
    std::optional<wire::Admission> admission{};

private:
    port::Link* link_;
    runtime::SeedLane lane_;
};

}  // namespace nexar::testing
