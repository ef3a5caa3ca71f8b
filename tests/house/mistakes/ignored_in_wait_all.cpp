// error: nexar: the result of this operation is lost; keep its Work in a variable
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world, int n) {
    nexar::wait_all(world.barrier(), world.broadcast(n, 0));
}
