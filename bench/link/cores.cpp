#include "cores.hpp"

#include <sched.h>

#include "control.hpp"

namespace nexar::bench {

std::vector<std::size_t> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) fail_system("read the list of allowed cores");
    std::vector<std::size_t> cores;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
    return cores;
}

void pin_thread(std::size_t core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail_system("pin a thread to a core");
}

}  // namespace nexar::bench
