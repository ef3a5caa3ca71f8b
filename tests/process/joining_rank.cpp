// A typical user program: joins, passes a number around the ring of ranks, and prints it.
//
//   --stay               leaves only when its standard input ends
//   --show-environment   counts the join strings in its environment

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <nexar/nexar.hpp>
#include <span>
#include <string>
#include <string_view>

namespace {

int count(std::string_view text, std::string_view wanted) {
    int found = 0;
    for (auto at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) ++found;
    return found;
}

void show_environment(const char* when) {
    for (const char* name : {"NEXAR_JOIN", "NEXAR_RANK"}) {
        std::printf("%s in environ %s: %d\n", name, when, std::getenv(name) == nullptr ? 0 : 1);
    }
    std::ifstream file("/proc/self/environ", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::printf("join strings in /proc/self/environ %s: %d\n", when, count(text, "=nexar1."));
}

}  // namespace

int main(int argc, char** argv) {
    const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
    const auto asked = [&](std::string_view flag) {
        return std::ranges::find(arguments, flag) != arguments.end();
    };
    try {
        if (asked("--show-environment")) show_environment("before");
        const nexar::Node node = nexar::join();
        if (asked("--show-environment")) show_environment("after");
        nexar::Communicator world = node.world();
        const int size = world.size();
        const std::array<std::int64_t, 1> sent{1000 + world.rank()};
        std::array<std::int64_t, 1> got{};
        // True on the rank that a test wants to exit without leaving, or to be killed.
        const auto is_this = [&](const char* variable) {
            const char* const rank = std::getenv(variable);
            return rank != nullptr && world.rank() == std::atoi(rank);
        };
        if (is_this("TEST_DESERTER")) ::_exit(0);
        if (is_this("TEST_KILLED")) ::raise(SIGKILL);
        world
            .send_recv(std::span(sent), (world.rank() + 1) % size, std::span(got),
                       (world.rank() + size - 1) % size)
            .wait();
        std::printf("rank %d of %d got %lld\n", world.rank(), size, static_cast<long long>(got[0]));
        std::fflush(stdout);
        while (asked("--stay") && std::getchar() != EOF) {
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
