#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace nexar::fuzz {

/// One decoder under test. `accepts` decodes the input, checks the contract of the decoder with
/// NEXAR_ASSERT, and returns whether the decoder accepted the input.
struct Harness {
    std::string_view name;  // also the folder of its corpus
    bool (*accepts)(std::span<const std::byte> input);
};

/// Every harness, in the order of fuzz/README.md.
std::span<const Harness> harnesses() noexcept;

/// The harness with this name; null if there is none.
const Harness* find_harness(std::string_view name) noexcept;

bool accepts_calls(std::span<const std::byte> input);
bool accepts_certificate(std::span<const std::byte> input);
bool accepts_engine(std::span<const std::byte> input);
bool accepts_frame(std::span<const std::byte> input);
bool accepts_join_string(std::span<const std::byte> input);
bool accepts_launch(std::span<const std::byte> input);
bool accepts_node_list(std::span<const std::byte> input);
bool accepts_preamble(std::span<const std::byte> input);
bool accepts_quic_datagram(std::span<const std::byte> input);
bool accepts_quic_pair(std::span<const std::byte> input);
bool accepts_shm_handshake(std::span<const std::byte> input);
bool accepts_shm_ring(std::span<const std::byte> input);

}  // namespace nexar::fuzz
