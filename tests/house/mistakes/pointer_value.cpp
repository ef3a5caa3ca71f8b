// error: nexar: a pointer does not say how many elements it points to; pass std::span(pointer,
// count)
#include <nexar/nexar.hpp>

nexar::Work<> mistake(const nexar::Communicator& world, float* gradient) {
    return world.send(gradient, 1);
}
