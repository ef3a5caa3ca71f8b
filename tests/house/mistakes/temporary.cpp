// error: nexar: this temporary is destroyed while the operation still uses its memory; keep it in a
// variable until the Work completes
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world) {
    world.all_reduce(std::vector<float>(8), nexar::sum).wait();
}
