#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/use_future.hpp>
#include <chrono>
#include <future>
#include <nexar/asio.hpp>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

namespace nexar {
namespace {

using namespace std::chrono_literals;

Errc code_of(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        return error.code();
    }
}

class AsioTest : public ::testing::Test {
protected:
    AsioTest()
        : nodes_(local_cluster(2, {.progressing = Progressing::user_loop})),
          a_(nodes_[0].world()),
          b_(nodes_[1].world()) {}

    asio::io_context io_;
    std::vector<Node> nodes_;
    Communicator a_;
    Communicator b_;
    AsioDriver driver_{io_, nodes_[0]};
};

TEST_F(AsioTest, a_callback_runs_with_the_value_in_the_thread_of_the_io_context) {
    const std::array<int, 1> value{7};
    std::array<int, 1> got{};
    std::thread::id ran;
    const auto received = [&](const std::exception_ptr& failure, Status status) {
        EXPECT_FALSE(failure);
        EXPECT_EQ(status.bytes, sizeof(int));
        ran = std::this_thread::get_id();
        driver_.stop();
    };
    async_wait(b_.recv(std::span(got), 0), asio::bind_executor(io_, received));
    a_.send(std::span(value), 1).wait();
    io_.run();
    EXPECT_EQ(got[0], 7);
    EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST_F(AsioTest, a_failure_arrives_as_an_exception) {
    std::array<int, 1> got{};
    Work<Status> never = b_.recv(std::span(got), 0, 99);
    never.cancel();
    Errc code{};
    const auto ended = [&](const std::exception_ptr& failure, Status /*status*/) {
        code = code_of(failure);
        driver_.stop();
    };
    async_wait(std::move(never), asio::bind_executor(io_, ended));
    io_.run();
    EXPECT_EQ(code, Errc::cancelled);
}

TEST_F(AsioTest, another_thread_can_wait_for_a_future) {
    std::vector<int> got(100'000);
    const std::vector<int> sent(100'000, 5);
    std::future<Status> received = async_wait(b_.recv(std::span(got), 0, 3), asio::use_future);
    std::future<void> done = async_wait(a_.send(std::span(sent), 1, 3), asio::use_future);
    std::thread runs([&] { io_.run(); });
    ASSERT_EQ(received.wait_for(30s), std::future_status::ready);
    EXPECT_EQ(received.get().bytes, sizeof(int) * sent.size());
    ASSERT_EQ(done.wait_for(30s), std::future_status::ready);
    asio::post(io_, [&] { driver_.stop(); });
    runs.join();
    EXPECT_EQ(got, sent);
}

// The node is busy all the time, so stop() often finds a handler of the driver already queued.
TEST(AsioDriver, stops_even_when_work_remains) {
    for (int round = 0; round < 40; ++round) {
        auto nodes = local_cluster(2, {.progressing = Progressing::user_loop});
        asio::io_context io;
        AsioDriver driver(io, nodes[0]);
        const std::vector<int> sent(1'000, round);
        std::vector<int> got(1'000);
        Work<Status> pending = nodes[1].world().recv(std::span(got), 0);
        Work<> under_way = nodes[0].world().send(std::span(sent), 1);
        for (int hop = 0; hop < round % 10; ++hop) io.poll_one();
        driver.stop();
        EXPECT_LT(io.run_for(30s), 100U);
        ASSERT_TRUE(io.stopped()) << "round " << round;
        pending.wait();
        under_way.wait();
        EXPECT_EQ(got, sent);
    }
}

}  // namespace
}  // namespace nexar
