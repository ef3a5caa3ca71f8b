#pragma once

#include <array>
#include <cstdint>

namespace nexar::bench {

/// The argument that makes this program a rank.
inline constexpr const char* kRankMode = "--be-a-rank";
/// The descriptor to which a rank writes its notices.
inline constexpr int kNoticeDescriptor = 3;

/// What a rank tells the program that started it. All ranks write to one pipe; a notice is smaller
/// than PIPE_BUF, so that notices do not mix.
struct Notice {
    enum class Kind : std::uint32_t {
        joined,     // rank: its rank in the cluster; at: first collective; value: start of join()
        failed,     // rank: the member that is listed as failed
        recovered,  // value: size of the shrunk world, after a correct all-reduce in it
        grown,      // value: longest pause of the traffic in ns, until the first one in a new world
        trouble,    // text says what went wrong
    };

    Kind kind = Kind::trouble;
    std::int32_t process = 0;
    std::int32_t rank = 0;
    std::int32_t world = 0;  // size of the world
    std::int64_t at = 0;     // CLOCK_MONOTONIC in ns
    std::int64_t value = 0;
    std::array<char, 400> text{};
};

/// CLOCK_MONOTONIC in ns, which all processes of a machine share.
std::int64_t monotonic_ns();

/// Joins, exchanges traffic and recovers from failures until it is killed.
int be_a_rank();

}  // namespace nexar::bench
