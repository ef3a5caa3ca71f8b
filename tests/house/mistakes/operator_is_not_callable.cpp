// error: nexar: an operator must be a built-in one, such as nexar::sum, or a callable (T, T) -> T
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world, std::vector<float>& gradient) {
    world.all_reduce(gradient, [](float a) { return a; }).wait();
}
