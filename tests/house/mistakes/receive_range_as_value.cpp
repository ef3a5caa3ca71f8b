// error: nexar: recv<T>() receives a single value; pass a range to recv() to receive its elements
#include <nexar/nexar.hpp>

std::vector<int> mistake(const nexar::Communicator& world) {
    return world.recv<std::vector<int>>(0).wait();
}
