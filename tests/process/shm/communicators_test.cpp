// Communicators on shared memory that come and go.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "process/shm/host_world.hpp"
#include "process/shm/resources.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

constexpr int kSharers = 4;
constexpr int kCommunicators = 100;
/// The heap settles at about this size above its first one; 4000 communicators need no more.
constexpr std::size_t kMostHeapGrowth = std::size_t{512} << 10U;

/// Runs a collective and exchanges messages with the neighbours.
void use(const Communicator& communicator, int number) {
    const int size = communicator.size();
    const int rank = communicator.rank();
    std::vector<int> values(5000);
    std::iota(values.begin(), values.end(), rank + number);
    auto reduce = communicator.all_reduce(std::span(values), sum);
    finish(reduce, soon());
    const int ranks = size * (size - 1) / 2;
    const int last = ranks + size * (number + static_cast<int>(values.size()) - 1);
    if (values.back() != last) throw Error(Errc::malformed, "the sum is wrong");
    const int sent = 1000 * number + rank;
    int got = 0;
    const int from = (rank + size - 1) % size;
    auto exchange =
        communicator.send_recv(std::span(&sent, 1), (rank + 1) % size, std::span(&got, 1), from, 1);
    finish(exchange, soon());
    if (got != 1000 * number + from) throw Error(Errc::malformed, "the message is wrong");
}

/// Makes the communicators and returns when the last rank has used all of them.
void use_one_after_the_other(const Communicator& world) {
    for (int i = 0; i < kCommunicators; ++i) {
        if (i % 3 == 2) {
            const auto half = world.split(static_cast<std::uint32_t>(world.rank() % 2));
            use(*half, i);
        } else {
            use(world.duplicate(), i);
        }
    }
}

void use_all_at_once(const Communicator& world) {
    std::vector<Communicator> all;
    for (int i = 0; i < kCommunicators; ++i) all.push_back(world.duplicate());
    for (int i = 0; i < kCommunicators; ++i) use(all[static_cast<std::size_t>(i)], i);
}

using Use = void (*)(const Communicator& world);

std::string text_of(const Resources& used) {
    return fmt::format("{} descriptors, {} shared mappings, {} mappings, heap {} bytes",
                       used.descriptors, used.shared_pieces, used.mappings, used.heap_bytes);
}

void run(Member& member, const Channel& parent, Use use_many) {
    const Communicator world = member.world();
    // No rank has a communicator besides the world while one of them counts.
    const auto count = [&] {
        use(world, 1);
        meet(parent);
        const Resources counted = resources();
        meet(parent);
        return counted;
    };
    use_many(world);  // allocates what is used again
    const Resources before = count();
    use_many(world);
    const Resources after = count();
    parent.say(fmt::format("before: {}; after: {}", text_of(before), text_of(after)));
    if (after.descriptors != before.descriptors || after.shared_pieces != before.shared_pieces)
        throw Error(Errc::malformed, "a communicator left something behind");
    if (!kSanitized && after.heap_bytes > before.heap_bytes + kMostHeapGrowth)
        throw Error(Errc::malformed, "the heap grew");
    leave(member, parent);
}

void expect_all_released(Use use_many) {
    HostWorld world(kSharers,
                    [&](Member& member, const Channel& parent) { run(member, parent, use_many); });
    for (int i = 0; i < 4; ++i) world.let_meet();
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
        std::printf("rank %zu %s\n", rank, hear(world.rank(rank).channel(), kWithin).c_str());
    }
    world.tell_all("leave");
    world.expect_end();
}

TEST(Communicators, a_hundred_made_one_after_the_other_leave_nothing_behind) {
    expect_all_released(use_one_after_the_other);
}

TEST(Communicators, a_hundred_at_once_leave_nothing_behind) {
    expect_all_released(use_all_at_once);
}

}  // namespace
}  // namespace nexar::testing
