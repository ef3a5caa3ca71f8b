// Two ranks, one message each way. In a real program each rank is a separate process.
#include <iostream>
#include <nexar/nexar.hpp>
#include <numeric>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t kQuestion = 1;
constexpr std::uint64_t kAnswer = 2;

void ask(const nexar::Communicator& world) {
    std::vector<double> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), 1.0);
    auto sending = world.send(numbers, 1, kQuestion);
    const double sum = world.recv<double>(1, kAnswer).wait();
    sending.wait();
    std::cout << "rank 1 says that the sum is " << sum << "\n";
}

void answer(const nexar::Communicator& world) {
    // The size of the message is not known, so probe before receiving.
    nexar::Message message = world.matched_probe(nexar::any_source, kQuestion).wait();
    const int asker = message.status().source;
    std::vector<double> numbers(message.status().count<double>());
    std::move(message).recv(numbers).wait();
    const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
    world.send(sum, asker, kAnswer).wait();
}

}  // namespace

int main() {
    try {
        std::vector<nexar::Node> nodes = nexar::local_cluster(2);
        std::thread other([&] { answer(nodes[1].world()); });
        ask(nodes[0].world());
        other.join();
        return 0;
    } catch (const nexar::Error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
