// A job that loses a process and gets a new one without restarting the others. Start it with
//
//     nexar run -n 4 --on-failure restart -- ./elastic
//
// Rank 2 kills itself. The survivors shrink their world and go on; the process that nexar run
// starts in its place joins at the next elastic checkpoint and receives the number of steps so far.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nexar/nexar.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kVictim = 2;
constexpr int kFatalStep = 200;
constexpr int kStepsAfter = 200;

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// One step of work: every rank contributes, and every rank checks the result.
void work(const nexar::Communicator& world) {
    std::vector<double> values(1000, world.rank() + 1);
    world.all_reduce(values, nexar::sum).wait();
    const double expected = world.size() * (world.size() + 1) / 2.0;
    if (std::ranges::any_of(values, [&](double value) { return value != expected; })) {
        throw std::runtime_error("the all-reduce gave a wrong sum");
    }
}

}  // namespace

int main(int argc, char** argv) {
    const nexar::Node node = nexar::join(argc, argv);
    int step = 0;
    std::optional<int> last_step;  // known once the world is complete again
    node.on_join({.save =
                      [&] {
                          std::vector<std::byte> bytes(sizeof step);
                          std::memcpy(bytes.data(), &step, sizeof step);
                          return bytes;
                      },
                  .load =
                      [&](const std::vector<std::byte>& bytes) {
                          std::memcpy(&step, bytes.data(), sizeof step);
                          last_step = step + kStepsAfter;
                      }});
    nexar::Communicator world = node.world();
    const bool first_life = !last_step;
    const auto say = [&](const char* what, double milliseconds) {
        if (world.rank() != 0) return;
        std::printf("step %d: %s after %.1f ms; the world has %d ranks\n", step, what, milliseconds,
                    world.size());
        std::fflush(stdout);
    };
    auto last_success = Clock::now();
    while (!last_step || step < *last_step) {
        try {
            if (first_life && node.rank() == kVictim && step == kFatalStep) std::raise(SIGKILL);
            work(world);
            last_success = Clock::now();
            ++step;
            const auto change = node.elastic_checkpoint();
            if (!change) continue;
            world = change->new_world;
            last_step = step + kStepsAfter;
            say("a process joined", milliseconds_since(last_success));
        } catch (const nexar::Error& error) {
            if (nexar::remedy(error.code()) != nexar::Remedy::recover) throw;
            world = world.shrink();
            // The failure may have ended the step on some ranks only.
            step = world.all_reduce(step, nexar::min).wait();
            say("a process was killed, and the others went on", milliseconds_since(last_success));
        }
    }
    if (world.rank() == 0) std::printf("done: %d steps, %d ranks\n", step, world.size());
}
