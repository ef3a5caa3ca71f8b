// How a member that has joined receives the application's state. The test plays the member that
// sends it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <nexar/nexar.hpp>
#include <string>
#include <vector>

#include "process/elastic/application_state.hpp"
#include "runtime/members/node_state.hpp"

namespace nexar::detail {
namespace {

using namespace std::chrono_literals;
using nexar::testing::application_state;
using ::testing::HasSubstr;

using State = std::vector<std::byte>;

constexpr auto kPatience = 40s;

/// The peak growth of resident memory since construction, as the kernel recorded it.
class Peak {
public:
    Peak() {
        ::malloc_trim(0);                               // reuse of freed memory would hide growth
        std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): resets the peak
        begin_ = peak();
    }

    std::size_t growth() const { return peak() - std::min(peak(), begin_); }

private:
    static std::size_t peak() {
        std::ifstream file("/proc/self/status");
        for (std::string word; file >> word;) {
            std::size_t kib = 0;
            if (word == "VmHWM:" && file >> kib) return kib * 1024;
        }
        ADD_FAILURE() << "/proc/self/status has no VmHWM";
        return 0;
    }

    std::size_t begin_ = 0;
};

class ReceivedState : public ::testing::Test {
protected:
    void say_size(std::uint64_t bytes) {
        header_ = {.bytes = bytes, .digest = 77};
        works_.push_back(lane_.send(header_, 1, kStateSizeTag));
    }
    /// Sends the bytes of `state` from `begin` on, at most one piece.
    void send_piece(const State& state, std::size_t begin) {
        const std::size_t bytes = std::min(kStatePieceBytes, state.size() - begin);
        works_.push_back(lane_.send(std::span(state).subspan(begin, bytes), 1, kStatePartTag));
    }

    State receive(Duration timeout) const { return receive_state(nodes_[1].world(), 1, timeout); }
    /// The error of receive().
    Error failure(Duration timeout) const {
        try {
            receive(timeout);
        } catch (const Error& error) {
            return error;
        }
        ADD_FAILURE() << "the state arrived";
        return {Errc::closed, "none"};
    }
    void expect_timeout() const {
        constexpr Duration kTimeout = 100ms;
        const auto begun = std::chrono::steady_clock::now();
        const Error error = failure(kTimeout);
        const auto took = std::chrono::steady_clock::now() - begun;
        EXPECT_EQ(error.code(), Errc::timed_out);
        EXPECT_THAT(error.what(), HasSubstr("the state of the application was not sent within the "
                                            "setting collective_timeout"));
        EXPECT_GE(took, kTimeout);
        EXPECT_LT(took, kPatience);
    }

private:
    std::vector<Node> nodes_ = local_cluster(2);
    Communicator lane_ = nodes_[0].world().duplicate();
    StateHeader header_;
    std::vector<Work<>> works_;
};

TEST_F(ReceivedState, is_put_together_from_pieces_of_16_mib) {
    EXPECT_EQ(kStatePieceBytes, std::size_t{16} << 20U);
    const State state = application_state(kStatePieceBytes + 4097, 5);
    say_size(state.size());
    send_piece(state, 0);
    send_piece(state, kStatePieceBytes);
    EXPECT_TRUE(receive(kPatience) == state);
}

TEST_F(ReceivedState, times_out_if_nothing_is_sent) {
    expect_timeout();
}

TEST_F(ReceivedState, times_out_if_only_the_size_is_sent) {
    say_size(5);
    expect_timeout();
}

TEST_F(ReceivedState, times_out_if_the_sender_stops_after_a_piece) {
    const State state = application_state(2 * kStatePieceBytes + 1, 5);
    say_size(state.size());
    send_piece(state, 0);
    expect_timeout();
}

TEST_F(ReceivedState, takes_no_memory_for_pieces_that_never_come) {
    constexpr std::size_t kSaid = std::size_t{1} << 30U;
    const State state = application_state(2 * kStatePieceBytes, 5);
    say_size(kSaid);
    send_piece(state, 0);
    const Peak peak;
    expect_timeout();
    EXPECT_LT(peak.growth(), kSaid / 3) << "a sanitizer also takes memory for addresses";
}

TEST_F(ReceivedState, that_no_memory_can_hold_is_an_error) {
    say_size(std::numeric_limits<std::uint64_t>::max());
    const Error error = failure(kPatience);
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("there is no memory for the 18446744073709551615 bytes of "
                                        "the application's state"));
}

}  // namespace
}  // namespace nexar::detail
