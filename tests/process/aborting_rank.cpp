// Joins, meets the others, and then one rank or all of them abort the program:
//
//     aborting_rank RANK|all CODE [uncaught|early|stopped]
//
// With `uncaught` the error ends the processes of the others; otherwise they print it and exit with
// 0. With `early` no rank waits until all have joined; with `stopped` the others stop (SIGSTOP).

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nexar/nexar.hpp>
#include <span>
#include <string>

namespace {

void run(const std::string& who, int code, const std::string& how) {
    const nexar::Node node = nexar::join();
    nexar::Communicator world = node.world();
    if (how != "early") world.barrier().wait();
    std::printf("met");  // without a line end, so that it must be flushed
    if (who == "all" || who == std::to_string(world.rank())) {
        world.abort(code, "the input file has no header");
        std::printf(" and returned");
    }
    if (how == "stopped") ::raise(SIGSTOP);
    std::array<int, 1> nothing{};
    world.recv(std::span(nothing)).wait();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string who = argc > 1 ? argv[1] : "0";
    const int code = argc > 2 ? std::atoi(argv[2]) : 3;
    const std::string how = argc > 3 ? argv[3] : "";
    if (how == "uncaught") {
        run(who, code, how);
        return 0;
    }
    try {
        run(who, code, how);
    } catch (const nexar::Error& error) {
        std::printf(" %s\n", error.what());
        return error.code() == nexar::Errc::aborted ? 0 : 9;
    }
    return 8;
}
