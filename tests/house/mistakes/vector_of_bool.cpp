// error: nexar: the elements of this range do not lie in one piece of memory, as those of std::vector<bool>, std::deque and std::list; copy them into another container
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world) {
    std::vector<bool> flags(8);
    world.broadcast(flags, 0).wait();
}
