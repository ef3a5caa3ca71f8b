#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/operation.hpp"
#include "support/link_end.hpp"

namespace nexar::testing {

/// A message from one node to another, with content that differs by position and seed. It must
/// outlive both operations.
struct Exchange {
    Exchange(std::uint64_t seed, std::size_t bytes)
        : sent(pattern(seed, bytes)), received(bytes), from(sent), to(received) {
        send.content = {&from, 1};
        receive.content = {&to, 1};
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    bool ended() const { return !send.active && !receive.active; }
    bool arrived() const {
        return ended() && !send.error && !receive.error && receive.envelope.bytes == sent.size() &&
               sent == received;
    }

    std::vector<std::byte> sent;
    std::vector<std::byte> received;
    port::ConstBytes from;
    port::Bytes to;
    engine::SendOperation send{};
    engine::ReceiveOperation receive{};
};

}  // namespace nexar::testing
