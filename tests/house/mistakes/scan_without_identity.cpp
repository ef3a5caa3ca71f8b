// error: nexar: the identity of your own operator is not known; pass the initial value that rank 0
// gets as the third argument
#include <nexar/nexar.hpp>

int mistake(const nexar::Communicator& world, int value) {
    return world.exclusive_scan(value, [](int a, int b) { return a * b; }).wait();
}
