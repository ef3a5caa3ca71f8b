// A rank that joins, prints its number, and then does what the file of its slot says. The files are
// in the folder TEST_GATES: gate.2 for rank 2, gate.2.1 after its first restart. They contain a
// word and a number: "exit 3" or "signal 9".

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nexar/nexar.hpp>
#include <string>
#include <thread>

namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string gate_of_this_process() {
    const std::string restarted = variable("NEXAR_RESTARTED");
    const std::string slot = variable("TEST_SLOT");
    return variable("TEST_GATES") + "/gate." + slot + (restarted.empty() ? "" : "." + restarted);
}

struct Task {
    std::string word;
    int number = 0;
};

/// Waits until the test has written the whole file.
Task wait_for_task(const std::string& gate) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
        std::ifstream file(gate);
        Task task;
        std::string end;
        if (file >> task.word >> task.number >> end && end == "end") return task;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {.word = "exit", .number = 99};
}

}  // namespace

int main() {
    try {
        const std::string gate = gate_of_this_process();
        Task task;
        {
            const nexar::Node node = nexar::join();
            std::printf("joined as rank %d\n", node.world().rank());
            std::fflush(stdout);
            task = wait_for_task(gate);
            if (task.word == "signal") ::raise(task.number);
            if (task.number != 0) ::_exit(task.number);
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
