// error: nexar: an element must be trivially copyable and must not refer to memory, as pointers and
// views do
#include <nexar/nexar.hpp>

nexar::Work<> mistake(const nexar::Communicator& world, const std::vector<int*>& places) {
    return world.send(places, 1);
}
