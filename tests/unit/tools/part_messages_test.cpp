#include "run/part_messages.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace nexar::run {
namespace {

std::string without_end(std::string line) {
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    line.pop_back();
    return line;
}

TEST(PartMessagesTest, survive_encoding_and_decoding) {
    const auto alive = decode_to_part(without_end(encode(ToPart(Alive{}))));
    ASSERT_TRUE(alive);
    EXPECT_TRUE(std::holds_alternative<Alive>(*alive));
    const auto signal = decode_to_part(without_end(encode(ToPart(PassOn{.signal = SIGUSR2}))));
    ASSERT_TRUE(signal);
    EXPECT_EQ(std::get<PassOn>(*signal).signal, SIGUSR2);
    const auto restart = decode_to_part(
        without_end(encode(ToPart(Restart{.rank = 65535, .number = 1, .join = "nexar1.a@b:1"}))));
    ASSERT_TRUE(restart);
    EXPECT_EQ(std::get<Restart>(*restart).rank, 65535U);
    EXPECT_EQ(std::get<Restart>(*restart).number, 1U);
    EXPECT_EQ(std::get<Restart>(*restart).join, "nexar1.a@b:1");
    const auto settle = decode_to_part(without_end(encode(ToPart(Settle{}))));
    ASSERT_TRUE(settle);
    EXPECT_TRUE(std::holds_alternative<Settle>(*settle));

    EXPECT_TRUE(std::holds_alternative<Alive>(
        decode_from_part(without_end(encode(FromPart(Alive{})))).value()));
    EXPECT_TRUE(std::holds_alternative<Finished>(
        decode_from_part(without_end(encode(FromPart(Finished{})))).value()));
    for (const Ended how : {Ended{.number = 255}, Ended{.by_signal = true, .number = 11}}) {
        const auto ended = std::get<RankEnded>(
            decode_from_part(without_end(encode(FromPart(RankEnded{.rank = 65535, .how = how}))))
                .value());
        EXPECT_EQ(ended.rank, 65535U);
        EXPECT_EQ(ended.how.by_signal, how.by_signal);
        EXPECT_EQ(ended.how.number, how.number);
    }
}

TEST(PartMessagesTest, output_of_ranks_and_malformed_lines_are_not_messages) {
    const std::string mark = without_end(encode(FromPart(Alive{}))).substr(0, 11);
    ASSERT_EQ(mark, "\x1enexar-run ");
    for (const std::string& line :
         {std::string("[2] alive"), std::string("alive"), "[2] " + mark + "alive", mark,
          mark + "alive 1", mark + "ended", mark + "ended 1 code", mark + "ended x code 1",
          mark + "ended 65536 code 1", mark + "ended 1 code 256", mark + "ended 1 code -1",
          mark + "ended 1 luck 1", mark + "ended 1 code 1 1", mark + "finished 0"}) {
        EXPECT_FALSE(decode_from_part(line)) << line;
    }
    for (const char* line :
         {"", "signal", "signal 0", "signal -9", "signal 1000", "signal 9 9", "signal nine",
          "alive now", "finished", "settle 1", "restart 1 1", "restart 65536 1 x", "restart 1 0 x",
          "restart 1 1000001 x", "restart one 1 x", "restart 1 1 x y"}) {
        EXPECT_FALSE(decode_to_part(line)) << line;
    }
}

}  // namespace
}  // namespace nexar::run
