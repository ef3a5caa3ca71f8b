// warning: the result of the operation is lost
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world, int n) {
    world.broadcast(n, 0).wait();
}
