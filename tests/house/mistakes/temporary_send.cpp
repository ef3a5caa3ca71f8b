// error: nexar: this temporary is destroyed while the operation still uses its memory; keep it in a
// variable until the Work completes
#include <nexar/nexar.hpp>
#include <string>

nexar::Work<> mistake(const nexar::Communicator& world) {
    return world.send(std::string("gone"), 1);
}
