// error: nexar: a value must be trivially copyable and must not refer to memory, as pointers and
// views do
#include <memory>
#include <nexar/nexar.hpp>

void mistake(const nexar::Communicator& world, const std::shared_ptr<int>& value) {
    static_cast<void>(world.broadcast(value, 0).wait());
}
