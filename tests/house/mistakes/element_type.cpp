// error: nexar: an element must be trivially copyable and must not refer to memory, as pointers and
// views do
#include <nexar/nexar.hpp>
#include <string>

void mistake(const nexar::Communicator& world) {
    std::vector<std::string> names(8);
    world.broadcast(names, 0).wait();
}
