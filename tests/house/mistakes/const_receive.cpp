// error: nexar: the operation writes its result into this range, but the elements are const
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world, std::span<const int> into) {
    world.recv(into, 0).wait();
}
