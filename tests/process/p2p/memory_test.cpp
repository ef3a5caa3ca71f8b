// The memory that large transfers take besides the caller's buffers: nexar never copies a whole
// message, neither at the sender nor at the receiver.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kMessage = std::size_t{64} << 20U;
constexpr std::size_t kMostGrowth = std::size_t{8} << 20U;
/// The peak growth of resident memory since construction, as the kernel recorded it.
class Peak {
public:
    Peak() {
        ::malloc_trim(0);  // otherwise reuse of freed memory would hide growth
        std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): resets the peak
        begin_ = resident_bytes();
    }

    std::size_t growth() const {
        std::ifstream file("/proc/self/status");
        for (std::string word; file >> word;) {
            if (word != "VmHWM:") continue;
            std::size_t kib = 0;
            file >> kib;
            return kib * 1024 - std::min(kib * 1024, begin_);
        }
        throw Error(Errc::bad_config, "/proc/self/status has no VmHWM");
    }

private:
    std::size_t begin_ = 0;
};

using Vector = std::vector<std::uint32_t>;
using Transfer = std::function<void(Communicator&, Vector&)>;

/// The growth of one rank while `transfer` runs on a node that has transferred little before.
std::size_t growth_of(Member& member, const Transfer& transfer) {
    Vector values(kMessage / sizeof(std::uint32_t));
    std::iota(values.begin(), values.end(), 7U + static_cast<std::uint32_t>(member.world().rank()));
    Communicator world = member.world();
    const Peak peak;
    transfer(world, values);
    return peak.growth();
}

void expect_little_growth(const std::string& link, const Transfer& transfer) {
    const TestCluster cluster;
    ChildProcess child([&](const Channel& parent) {
        const auto member = join_as_child(cluster, parent, {.link = link});
        parent.say(std::to_string(growth_of(*member, transfer)));
        await(parent, "leave", kWithin);
        member->node().close();
    });
    const auto member = join_as_parent(cluster, child.channel(), {.link = link});
    const std::size_t here = growth_of(*member, transfer);
    const std::size_t there = std::stoull(hear(child.channel(), kWithin));
    child.channel().say("leave");
    EXPECT_EQ(child.wait(), 0);
    std::printf("rank 0 grew by %zu kB, rank 1 by %zu kB\n", there / 1000, here / 1000);
    if (kSanitized) return;  // the sanitizers' own memory would count
    EXPECT_GT(here + there, 0U) << "nothing was measured";
    EXPECT_LT(here, kMostGrowth);
    EXPECT_LT(there, kMostGrowth);
}

class Memory : public ::testing::TestWithParam<std::string> {};

TEST_P(Memory, both_ends_of_a_64_mib_message_grow_by_less_than_8_mib) {
    expect_little_growth(GetParam(), [](Communicator& world, Vector& values) {
        if (world.rank() == 0) {
            auto send = world.send(std::span<const std::uint32_t>(values), 1, 1);
            finish(send, soon());
        } else {
            auto receive = world.recv(std::span(values), 0, 1);
            finish(receive, soon());
            if (values.back() != values.size() + 6)
                throw Error(Errc::malformed, "the data is wrong");
        }
    });
}

TEST_P(Memory, all_ranks_of_a_64_mib_all_reduce_grow_by_less_than_8_mib) {
    expect_little_growth(GetParam(), [](Communicator& world, Vector& values) {
        auto work = world.all_reduce(std::span(values), sum);
        finish(work, soon());
        const auto last = static_cast<std::uint32_t>(2 * (values.size() + 6) + 1);
        if (values.back() != last) throw Error(Errc::malformed, "the data is wrong");
    });
}

INSTANTIATE_TEST_SUITE_P(Over, Memory, ::testing::Values("quic", "shm"),
                         [](const auto& link) { return link.param; });

}  // namespace
}  // namespace nexar::testing
