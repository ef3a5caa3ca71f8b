// error: nexar: the input and the output must have the same element type
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world) {
    std::vector<float> in(8);
    std::vector<double> out(8);
    world.all_gather(in, out).wait();
}
