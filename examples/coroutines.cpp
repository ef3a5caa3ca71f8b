// Coroutines on an Asio io_context that also makes nexar's progress, so nexar needs no thread of
// its own. Asio's coroutines need async_wait(); other coroutine types can co_await a Work directly.
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <iostream>
#include <nexar/asio.hpp>
#include <nexar/nexar.hpp>
#include <vector>

namespace {

asio::awaitable<void> ping(nexar::Communicator world, nexar::AsioDriver& driver) {
    int ball = 0;
    for (int i = 0; i < 5; ++i) {
        co_await nexar::async_wait(world.send(ball, 1), asio::use_awaitable);
        ball = co_await nexar::async_wait(world.recv<int>(1), asio::use_awaitable);
    }
    std::cout << "the ball was hit " << ball << " times\n";
    driver.stop();
}

asio::awaitable<void> pong(nexar::Communicator world) {
    for (int i = 0; i < 5; ++i) {
        const int ball = co_await nexar::async_wait(world.recv<int>(0), asio::use_awaitable);
        co_await nexar::async_wait(world.send(ball + 1, 0), asio::use_awaitable);
    }
}

}  // namespace

int main() {
    try {
        asio::io_context io;
        std::vector<nexar::Node> nodes =
            nexar::local_cluster(2, {.progressing = nexar::Progressing::user_loop});
        nexar::AsioDriver driver(io, nodes[0]);
        asio::co_spawn(io, pong(nodes[1].world()), asio::detached);
        asio::co_spawn(io, ping(nodes[0].world(), driver), asio::detached);
        io.run();
        return 0;
    } catch (const nexar::Error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
