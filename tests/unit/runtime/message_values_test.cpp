// Messages that carry single values, ranges and structs; no_rank; lists that mix sends and
// receives; dropped works.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nexar/nexar.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/base/log_capture.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Point {
    double x = 0;
    int mark = 0;

    friend bool operator==(const Point&, const Point&) noexcept = default;
};

/// A ring of ranks in one thread: rank i sends to rank i + 1.
class Messages : public ::testing::TestWithParam<int> {
protected:
    Messages() : nodes_(local_cluster(GetParam())) {
        for (const Node& node : nodes_) ranks_.push_back(node.world());
    }

    int right(const Communicator& c) const { return (c.rank() + 1) % c.size(); }
    int left(const Communicator& c) const { return (c.rank() + c.size() - 1) % c.size(); }

    std::vector<Node> nodes_;
    std::vector<Communicator> ranks_;
};

INSTANTIATE_TEST_SUITE_P(Worlds, Messages, ::testing::Values(1, 2, 3, 5),
                         [](const auto& world) { return "world_" + std::to_string(world.param); });

TEST_P(Messages, carry_single_values) {
    for (const Communicator& c : ranks_) {
        c.send(1.5 * c.rank(), right(c), 1).wait();
        c.send(Point{.x = 0.25, .mark = c.rank()}, right(c), 2).wait();
        c.send(c.rank() % 2 == 0, right(c), 3).wait();
        c.send(std::byte{9}, right(c), 4).wait();
        c.send('x', right(c), 5).wait();
    }
    for (const Communicator& c : ranks_) {
        EXPECT_EQ(c.recv<char>(left(c), 5).wait(), 'x');
        EXPECT_EQ(c.recv<std::byte>(any_source, 4).wait(), std::byte{9});
        EXPECT_EQ(c.recv<bool>(left(c), 3).wait(), left(c) % 2 == 0);
        EXPECT_EQ(c.recv<Point>(left(c), 2).wait(), (Point{.x = 0.25, .mark = left(c)}));
        EXPECT_EQ(c.recv<double>().wait(), 1.5 * left(c));
    }
}

TEST_P(Messages, keep_large_values_alive_until_they_are_received) {
    using Large = std::array<int, 50'000>;  // too large for an eager message
    struct Wrapped {
        Large numbers;
    };
    std::vector<Work<>> sends;
    for (const Communicator& c : ranks_) {
        Wrapped value{};
        value.numbers.fill(c.rank() + 5);
        Work<> work = c.send(value, right(c));
        sends.push_back(std::move(work));
    }
    for (const Communicator& c : ranks_) {
        const Wrapped got = c.recv<Wrapped>(left(c)).wait();
        EXPECT_EQ(got.numbers.front(), left(c) + 5);
        EXPECT_EQ(got.numbers.back(), left(c) + 5);
    }
    wait_all(sends);
}

TEST_P(Messages, fail_when_their_size_differs_from_the_value) {
    for (const Communicator& c : ranks_) {
        c.send(std::int16_t{1}, right(c), 1).wait();
        c.send(std::int64_t{1}, right(c), 2).wait();
    }
    for (const Communicator& c : ranks_) {
        const auto small = c.recv<int>(left(c), 1).result();
        ASSERT_FALSE(small);
        EXPECT_EQ(small.error().code(), Errc::invalid_argument);
        EXPECT_THAT(small.error().what(), AllOf(HasSubstr("2 bytes"), HasSubstr("has 4")));
        EXPECT_EQ(c.recv<int>(left(c), 2).result().error().code(), Errc::truncated);
    }
}

TEST_P(Messages, accept_ranges_without_a_span) {
    for (const Communicator& c : ranks_) {
        const std::vector<int> numbers{c.rank(), 2, 3};
        c.send(numbers, right(c)).wait();
        const std::string text = "from " + std::to_string(c.rank());
        c.send(text, right(c)).wait();
        c.send(std::as_bytes(std::span(numbers)), right(c)).wait();
        c.send("literal", right(c)).wait();
    }
    for (const Communicator& c : ranks_) {
        std::array<int, 3> numbers{};
        EXPECT_EQ(c.recv(numbers, left(c)).wait().count<int>(), 3U);
        EXPECT_EQ(numbers[0], left(c));
        std::string text(20, ' ');
        text.resize(c.recv(text, left(c)).wait().bytes);
        EXPECT_EQ(text, "from " + std::to_string(left(c)));
        std::vector<std::byte> bytes(12);
        EXPECT_EQ(c.recv(bytes, left(c)).wait().bytes, 12U);
        char literal[8];
        c.recv(literal, left(c)).wait();
        EXPECT_STREQ(literal, "literal");
    }
}

TEST_P(Messages, complete_at_once_and_move_nothing_with_no_rank) {
    constexpr Status kNothing{.source = no_rank};
    for (const Communicator& c : ranks_) {
        std::vector<int> data{1, 2, 3};
        const auto kept = data;
        EXPECT_TRUE(c.send(data, no_rank).done());
        c.send(7, no_rank).wait();
        EXPECT_EQ(c.recv(data, no_rank).wait(), kNothing);
        EXPECT_EQ(c.recv_iov(strided(data.data(), 2, 1, 2), no_rank).wait(), kNothing);
        c.send_iov(strided(data.data(), 2, 1, 2), no_rank).wait();
        EXPECT_EQ(c.probe(no_rank).wait(), kNothing);
        EXPECT_EQ(c.try_probe(no_rank), kNothing);
        EXPECT_EQ(c.send_recv(data, no_rank, data, no_rank).wait(), kNothing);
        EXPECT_EQ(c.recv<int>(no_rank).result().error().code(), Errc::invalid_argument);
        EXPECT_EQ(data, kept);
        // At the edge of a grid only one half of the exchange has a neighbour.
        std::array<int, 1> in{};
        const std::array<int, 1> out{c.rank()};
        EXPECT_EQ(c.send_recv(out, c.rank(), in, no_rank).wait(), kNothing);
        EXPECT_EQ(c.send_recv(out, no_rank, in, c.rank()).wait().source, c.rank());
        EXPECT_EQ(in, out);
        EXPECT_THROW(c.send(data, -1).wait(), Error);
        EXPECT_THROW(static_cast<void>(c.matched_probe(no_rank)), Error);
    }
}

TEST_P(Messages, sends_and_receives_fit_into_one_list_of_works) {
    std::vector<std::array<int, 2>> got(ranks_.size());
    std::vector<Work<>> works;
    for (const Communicator& c : ranks_) {
        works.push_back(c.recv(got[static_cast<std::size_t>(c.rank())], left(c)));
        works.push_back(c.send(c.rank(), right(c)));
        works.push_back(c.recv(got[0], no_rank));
        works.push_back({});
    }
    wait_all(works);
    for (const Communicator& c : ranks_) {
        EXPECT_EQ(got[static_cast<std::size_t>(c.rank())][0], left(c));
        std::array<Work<>, 2> two{c.send(c.rank(), c.rank()), c.recv(got[0], c.rank())};
        wait_all(two);
        wait_all(c.send(c.rank(), c.rank()), c.recv(got[0], c.rank()));
    }
}

TEST_P(Messages, strided_regions_carry_a_matrix_column) {
    // The middle column of a 4 x 3 matrix goes to the right neighbour and becomes its last column.
    for (const Communicator& c : ranks_) {
        std::array<int, 12> matrix{};
        for (std::size_t i = 0; i < matrix.size(); ++i)
            matrix[i] = 100 * c.rank() + static_cast<int>(i);
        c.send_iov(strided(&std::as_const(matrix[1]), 4, 1, 3), right(c)).wait();
    }
    for (const Communicator& c : ranks_) {
        std::array<int, 12> matrix{};
        EXPECT_EQ(c.recv_iov(strided(&matrix[2], 4, 1, 3), left(c)).wait().count<int>(), 4U);
        for (std::size_t row = 0; row < 4; ++row) {
            EXPECT_EQ(matrix[3 * row + 2], 100 * left(c) + 1 + 3 * static_cast<int>(row));
            EXPECT_EQ(matrix[3 * row], 0);
        }
    }
    EXPECT_TRUE(strided(static_cast<int*>(nullptr), 0, 1, 3).empty());
}

class DroppedWork : public ::testing::Test {
protected:
    DroppedWork() : nodes_(local_cluster(2)), a_(nodes_[0].world()), b_(nodes_[1].world()) {}

    std::vector<std::string> errors() const {
        std::vector<std::string> texts;
        for (const auto& line : log_.lines()) {
            if (line.level == LogLevel::error) texts.push_back(line.text);
        }
        return texts;
    }

    LogCapture log_;
    std::vector<Node> nodes_;
    Communicator a_;
    Communicator b_;
};

TEST_F(DroppedWork, is_logged_once_with_its_operation_when_it_failed) {
    {
        std::array<int, 1> small{};
        const auto dropped = b_.recv(small, 0, 7);
        const std::array<int, 2> large{1, 2};
        a_.send(large, 1, 7).wait();
        while (!dropped.done()) std::this_thread::yield();
    }
    EXPECT_THAT(errors(), ::testing::ElementsAre(AllOf(HasSubstr("receive from rank 0, tag 7"),
                                                       HasSubstr("truncated"))));
}

TEST_F(DroppedWork, is_not_logged_when_its_error_was_seen_or_it_was_cancelled_or_closed) {
    std::array<int, 1> small{};
    const std::array<int, 2> large{1, 2};
    a_.send(large, 1, 1).wait();
    EXPECT_FALSE(b_.recv(small, 0, 1).result());
    a_.send(large, 1, 2).wait();
    auto first = b_.recv(small, 0, 2);
    EXPECT_THROW(wait_all(first), Error);
    {
        auto cancelled = b_.recv(small, 0, 3);
        cancelled.cancel();
    }
    try {
        const auto unwound = b_.recv(small, 0, 4);
        throw 1;
    } catch (int) {
    }
    {
        auto open = b_.recv(small, 0, 5);
        nodes_[1].close();
        EXPECT_TRUE(open.done());
    }
    EXPECT_THAT(errors(), ::testing::IsEmpty());
}

TEST_F(DroppedWork, logs_type_and_count_of_a_collective) {
    std::vector<float> values(10);
    {
        const auto dropped = a_.all_reduce(values, sum);
        std::vector<float> fewer(9);
        EXPECT_FALSE(b_.all_reduce(fewer, sum).result());
        while (!dropped.done()) std::this_thread::yield();
    }
    EXPECT_THAT(errors(), ::testing::ElementsAre(HasSubstr("all_reduce f32 x 10 sum")));
}

}  // namespace
}  // namespace nexar
