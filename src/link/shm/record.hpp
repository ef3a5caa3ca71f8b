#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "port/stream.hpp"

// The records of a ring. Numbers are in the byte order of the host: both processes run on it.
namespace nexar::shm {

enum class RecordKind : std::uint8_t {
    lane = 1,     // detail: the lane. Content: bytes of the lane
    stream,       // detail: StreamDetail. Content: the number of the stream, then its next bytes.
                  // Streams are numbered from 0; the first record of a number opens the stream
    reset,        // content: the number of a stream that the writer gave up
    report,       // detail: ReportDetail. Content: StreamReport, about a stream of the reader
    lane_report,  // detail: the lane. Content: how many of its bytes the writer accepts in all
    datagram,     // content: the message
    farewell,     // the writer has delivered everything, and one of the two closes the link
    look,         // the socket has a message
    goodbye,      // the writer ended the link; Control says why
};
inline constexpr std::uint8_t kLastRecordKind = static_cast<std::uint8_t>(RecordKind::goodbye);

inline constexpr std::uint8_t kStreamEnds = 1;  // no bytes follow

inline constexpr std::uint8_t kReportArrived = 1;  // all bytes of the stream are here
inline constexpr std::uint8_t kReportRetired = 2;  // the stream has ended; another one may begin
inline constexpr std::uint8_t kReportRefused = 4;
inline constexpr std::uint8_t kReportDetails = 7;

struct StreamReport {
    std::uint64_t number = 0;
    std::uint64_t limit = 0;  // how many bytes of the stream its receiver accepts in all
};

inline constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

inline std::uint64_t number_at(const std::byte* place) noexcept {
    std::uint64_t number = 0;
    std::memcpy(&number, place, sizeof number);
    return number;
}
inline void put_number(std::byte* place, std::uint64_t number) noexcept {
    std::memcpy(place, &number, sizeof number);
}

}  // namespace nexar::shm
