#pragma once

#include <optional>

#include "port/link.hpp"

namespace nexar {

/// A carrier without links, on which nothing arrives. Tests derive from it and override what they
/// need.
class LinklessCarrier : public port::Carrier {
public:
    int descriptor() const noexcept override { return -1; }
    bool wants_write() const noexcept override { return false; }
    bool on_ready(TimePoint /*now*/) override { return false; }
    void flush(TimePoint /*now*/) override {}
    std::optional<TimePoint> next_deadline() const override { return std::nullopt; }
    std::optional<port::LinkEvent> poll_event() override { return std::nullopt; }
    void forget(port::LinkId /*link*/) override {}
};

}  // namespace nexar
