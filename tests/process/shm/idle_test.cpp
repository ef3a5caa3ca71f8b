// What eight ranks on one host use while they wait: CPU time and memory.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>

#include "link/shm/options.hpp"
#include "process/shm/host_world.hpp"
#include "process/shm/resources.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using Microseconds = std::chrono::microseconds;

constexpr int kRanks = 8;
constexpr std::size_t kMiB = std::size_t{1} << 20U;

/// CPU time of all threads of this process.
Microseconds used() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto duration = [](const timeval& time) {
        return std::chrono::seconds(time.tv_sec) + Microseconds(time.tv_usec);
    };
    return duration(usage.ru_utime) + duration(usage.ru_stime);
}

/// Waits for a rank that does not come, and reports the CPU time of the second second.
void wait_in_vain(Member& member, const Channel& parent) {
    Communicator world = member.world();
    const int next = (world.rank() + 1) % world.size();
    int value = 0;
    auto never = world.recv(std::span(&value, 1), next, 99);
    Work<> barrier;
    if (world.rank() != 0) barrier = world.barrier();
    const auto wait = [&](std::chrono::milliseconds time) {
        const bool came = world.rank() == 0 ? never.wait_for(time) : barrier.wait_for(time);
        if (came) throw Error(Errc::malformed, "an operation ended that cannot end");
    };
    wait(1s);
    const Microseconds before = used();
    wait(1s);
    parent.say(std::to_string((used() - before).count()));
    await(parent, "go", kWithin);
    if (world.rank() == 0) barrier = world.barrier();
    finish(barrier, soon());
    never.cancel();
    leave(member, parent);
}

TEST(IdleRanks, eight_waiting_ranks_use_less_than_5_percent_of_a_processor_each) {
    HostWorld world(kRanks, wait_in_vain);
    std::string line;
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
        const auto us = Microseconds(std::stoll(hear(world.rank(rank).channel(), kWithin)));
        line += fmt::format(" {:.2f} %", static_cast<double>(us.count()) / 10'000);
        if (kSanitized) continue;
        EXPECT_LT(us, 50ms) << "rank " << rank;
    }
    std::printf("CPU time of the ranks after 1 s of waiting:%s\n", line.c_str());
    world.tell_all("go");
    world.tell_all("leave");
    world.expect_end();
}

using Numbers = std::vector<std::uint32_t>;

/// Runs every collective once with large and once with small vectors.
void use_all_collectives(Communicator& world) {
    const auto ranks = static_cast<std::size_t>(world.size());
    const auto done = [](Work<> work) { finish(work, soon()); };
    for (const std::size_t elements : {std::size_t{16}, kMiB / 4}) {
        Numbers whole(elements, 3);
        Numbers out(elements);
        Numbers part(elements / ranks, 5);
        done(world.barrier());
        done(world.all_reduce(std::span(whole), sum));
        done(world.reduce(std::span(whole), std::span(out), sum, 1));
        done(world.broadcast(std::span(whole), 2));
        done(world.gather(std::span(part), std::span(out), 3));
        done(world.scatter(std::span(out), std::span(part), 4));
        done(world.scan(std::span(whole), std::span(out), sum));
        done(world.exclusive_scan(std::span(whole), std::span(out), sum));
        done(world.reduce_scatter(std::span(whole), std::span(part), sum));
        done(world.all_gather(std::span(part), std::span(out)));
        done(world.all_to_all(std::span(whole), std::span(out)));
    }
}

/// The shared memory of a rank.
struct Shared {
    std::vector<SharedPiece> own_rings{};
    std::vector<SharedPiece> peer_rings{};
    std::vector<SharedPiece> own_segments{};
    std::vector<SharedPiece> peer_segments{};
};

Shared shared_memory() {
    const std::size_t ring =
        shm::LinkOptions{}.ring_bytes + static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    Shared found;
    for (const SharedPiece& piece : shared_pieces()) {
        if (piece.bytes == ring) {
            (piece.own ? found.own_rings : found.peer_rings).push_back(piece);
        } else {
            (piece.own ? found.own_segments : found.peer_segments).push_back(piece);
        }
    }
    return found;
}

std::size_t bytes_of(const std::vector<SharedPiece>& pieces) {
    return std::accumulate(pieces.begin(), pieces.end(), std::size_t{0},
                           [](std::size_t sum, const SharedPiece& one) { return sum + one.bytes; });
}

void require(bool holds, const std::string& what) {
    if (!holds) throw Error(Errc::malformed, what);
}

/// Checks the shared memory of a rank that has this many communicators in use.
std::string check_shared_memory(std::size_t communicators) {
    const std::size_t peers = kRanks - 1;
    const Shared found = shared_memory();
    require(found.own_rings.size() == peers && found.peer_rings.size() == peers,
            fmt::format("{} own rings and {} rings of peers", found.own_rings.size(),
                        found.peer_rings.size()));
    const std::size_t rings = bytes_of(found.own_rings) + bytes_of(found.peer_rings);
    require(rings <= peers * 2 * kMiB, fmt::format("{} bytes of rings", rings));
    require(found.own_segments.size() == communicators &&
                found.peer_segments.size() == communicators * peers,
            fmt::format("{} own segments and {} of peers", found.own_segments.size(),
                        found.peer_segments.size()));
    const std::size_t segments = bytes_of(found.own_segments);
    require(segments <= communicators * 8 * kMiB, fmt::format("{} bytes of segments", segments));
    return fmt::format("{} kB of rings per pair, {} kB of segments", rings / peers / 1000,
                       segments / 1000);
}

void use_memory(Member& member, const Channel& parent) {
    Communicator world = member.world();
    use_all_collectives(world);
    meet(parent);
    const std::string shared = check_shared_memory(1);
    const std::size_t kilobyte = 1000;
    parent.say(fmt::format("{}; resident {} kB, proportional {} kB, of which shared {} kB", shared,
                           rollup("Rss") / kilobyte, rollup("Pss") / kilobyte,
                           rollup("Pss_Shmem") / kilobyte));
    const Resources before = resources();
    meet(parent);  // otherwise a rank that is ahead shares its next segment while others count
    {
        Communicator second = world.duplicate();
        use_all_collectives(second);
        check_shared_memory(2);
    }
    meet(parent);
    check_shared_memory(1);
    require(resources().descriptors == before.descriptors, "a descriptor was not closed");
    parent.say("released");
    leave(member, parent);
    const Shared left = shared_memory();
    require(shared_pieces().empty(),
            fmt::format("after close(), {} rings and {} segments are still mapped",
                        left.own_rings.size() + left.peer_rings.size(),
                        left.own_segments.size() + left.peer_segments.size()));
}

TEST(IdleRanks, shared_memory_of_eight_ranks_is_bounded_and_freed_with_its_communicator) {
    HostWorld world(kRanks, use_memory);
    world.let_meet();
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
        std::printf("rank %zu: %s\n", rank, hear(world.rank(rank).channel(), kWithin).c_str());
    }
    world.let_meet();
    world.let_meet();
    world.await_all("released");
    world.tell_all("leave");
    world.expect_end();
}

}  // namespace
}  // namespace nexar::testing
