// Compiles without a warning: the checks accept correct code.
#include <nexar/nexar.hpp>
#include <string>

namespace {

struct Particle {
    double place[3];
};

}  // namespace

double no_mistake(const nexar::Communicator& world, std::vector<float>& gradient) {
    world.all_reduce(gradient, nexar::sum).wait();
    world.all_reduce(std::span(gradient).first(2), std::plus<>{}).wait();
    const std::string text = "text";
    nexar::wait_all(world.send(text, 1), world.recv(gradient, 1));
    world.send(std::as_bytes(std::span(gradient)), nexar::no_rank).wait();
    std::vector<Particle> particles(3);
    world.broadcast(particles, 0).wait();
    const Particle first = world.broadcast(particles.front(), 0).wait();
    std::vector<nexar::Work<>> works;
    works.push_back(world.send(first, 1));
    works.push_back(world.recv(particles, 0));
    nexar::wait_all(works);
    return world.all_reduce(1.0, nexar::max).wait();
}
