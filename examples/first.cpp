#include <iostream>
#include <nexar/nexar.hpp>
#include <vector>

int main() {
    const nexar::Node node = nexar::join();  // finds the others, encrypted and authenticated
    const nexar::Communicator world = node.world();

    std::vector<float> gradient(1 << 20, static_cast<float>(world.rank()));
    world.all_reduce(gradient, nexar::sum).wait();
    if (world.rank() == 0) std::cout << "every rank has " << gradient.back() << '\n';
}
