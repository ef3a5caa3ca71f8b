// error: nexar: the operation writes its result into this range, but the elements are const
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world) {
    const std::vector<float> gradient(8);
    world.all_reduce(gradient, nexar::sum).wait();
}
