// A rank of a job that survives failures and takes in new processes. It prints its process id and
// rank, and the members of its world whenever they have changed. It ends when the file "stop" is in
// the folder TEST_GATES. With TEST_CRASH it crashes as soon as it is in a world.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nexar/nexar.hpp>
#include <string>
#include <thread>

namespace {

void tell(const nexar::Communicator& world) {
    std::string members;
    for (const int rank : world.members()) {
        members += (members.empty() ? "" : ",") + std::to_string(rank);
    }
    std::printf("world %s\n", members.c_str());
    std::fflush(stdout);
}

/// Works until the test stops the job.
void work(const nexar::Node& node, const std::filesystem::path& stop) {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
        try {
            const int stopped = std::filesystem::exists(stop) ? 1 : 0;
            if (node.world().all_reduce(stopped, nexar::max).wait() != 0) return;
            if (const auto change = node.elastic_checkpoint()) tell(change->new_world);
        } catch (const nexar::Error& error) {
            if (nexar::remedy(error.code()) != nexar::Remedy::recover) throw;
            tell(node.world().shrink());
        }
    }
}

}  // namespace

int main() {
    try {
        const char* const gates = std::getenv("TEST_GATES");
        if (gates == nullptr) return 2;
        const nexar::Node node = nexar::join();
        const nexar::Communicator world = node.world();
        std::printf("process %d is rank %d\n", static_cast<int>(::getpid()), node.rank());
        tell(world);
        if (std::getenv("TEST_CRASH") != nullptr) std::abort();
        work(node, std::filesystem::path(gates) / "stop");
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 98;
    }
}
