// error: nexar: this range is not contiguous in memory (std::vector<bool>, std::deque and std::list
// are not); copy its elements into a std::vector of another type
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world) {
    std::vector<bool> flags(8);
    world.broadcast(flags, 0).wait();
}
