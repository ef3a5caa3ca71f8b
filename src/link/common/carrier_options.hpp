#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/address.hpp"
#include "base/config.hpp"
#include "base/secret.hpp"
#include "base/time.hpp"
#include "port/dial.hpp"
#include "security/credentials.hpp"
#include "security/wall_time.hpp"

namespace nexar::link {

/// User settings that apply to links of every kind. A kind ignores the settings it does not need.
struct LinkSettings {
    port::Protection protection = port::Protection::full;
    Duration idle_timeout = std::chrono::seconds(30);
    Duration keep_alive = std::chrono::seconds(3);
    Duration linger = std::chrono::seconds(2);  // of Link::close()
    /// Bytes that the kernel buffers for this node while it computes.
    std::size_t receive_buffer = std::size_t{8} * 1024 * 1024;
};

/// The link settings in a Config of kSettings.
LinkSettings link_settings(const Config& config) noexcept;

/// Everything that a kind of link may need to open its carrier.
struct CarrierOptions {
    Address local{};
    /// None: see port::Carrier::set_credentials().
    std::shared_ptr<const security::Credentials> credentials{};
    /// True for a seed: joiners, which have no certificate, may dial it.
    bool accepts_joiners = false;
    LinkSettings settings{};
    /// The number of the carrier's first link: links of all carriers of a node differ.
    std::uint64_t first_link = 1;
    /// 32 bytes that stay the same across restarts, so that peers of the previous process notice at
    /// once that it is gone. Empty: random.
    Secret restart_secret{};
    security::WallClock wall_clock{};                       // empty: the machine's
    std::function<void(std::span<std::uint8_t>)> random{};  // unpredictable; empty: the machine's
};

}  // namespace nexar::link
