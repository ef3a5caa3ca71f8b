// error: nexar: an operator must be a built-in one, such as nexar::sum, or a callable (T, T) -> T
#include <nexar/nexar.hpp>

double mistake(const nexar::Communicator& world) {
    return world.all_reduce(1.0, 7).wait();
}
