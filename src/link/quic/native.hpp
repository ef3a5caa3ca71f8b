#pragma once

#include <ngtcp2/ngtcp2.h>

#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/quic/packet_header.hpp"
#include "link/quic/packet_path.hpp"

/// Converts our values for ngtcp2. Included only by source files that call it, never by headers.
namespace nexar::quic {

inline const std::uint8_t* native(const std::byte* bytes) noexcept {
    return reinterpret_cast<const std::uint8_t*>(bytes);
}
inline std::uint8_t* native(std::byte* bytes) noexcept {
    return reinterpret_cast<std::uint8_t*>(bytes);
}

inline ngtcp2_tstamp native(TimePoint time) noexcept {
    return static_cast<ngtcp2_tstamp>(time.time_since_epoch().count());
}

inline ngtcp2_duration native(Duration duration) noexcept {
    return static_cast<ngtcp2_duration>(duration.count());
}

inline ngtcp2_cid native(const AnyCid& cid) noexcept {
    ngtcp2_cid id{};
    ngtcp2_cid_init(&id, cid.bytes.data(), cid.size);
    return id;
}

/// Points into `path`; ngtcp2 copies what it keeps.
inline ngtcp2_path native(const Path& path) noexcept {
    return {.local = {.addr = const_cast<sockaddr*>(path.local.native()),
                      .addrlen = path.local.native_size()},
            .remote = {.addr = const_cast<sockaddr*>(path.remote.native()),
                       .addrlen = path.remote.native_size()},
            .user_data = nullptr};
}

/// The path that ngtcp2 reports for a packet; we passed both addresses to it before.
inline Path from_native(const ngtcp2_path& path) {
    return {.local = *Address::from_native(path.local.addr, path.local.addrlen),
            .remote = *Address::from_native(path.remote.addr, path.remote.addrlen)};
}

}  // namespace nexar::quic
