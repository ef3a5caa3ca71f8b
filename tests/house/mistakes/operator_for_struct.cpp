// error: nexar: nexar's own operators fold only numbers; pass a callable (T, T) -> T to fold bool,
// std::byte and structs
#include <nexar/nexar.hpp>

bool mistake(const nexar::Communicator& world, bool done) {
    return world.all_reduce(done, nexar::logical_and).wait();
}
