#include "run/part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace nexar::run {
namespace {

using testing::HasSubstr;
using testing::Not;

Part example() {
    return {.join = "nexar1.hunter2",
            .world = 4,
            .first_rank = 2,
            .count = 2,
            .command = {"./program", "a b", "\xff\n\"'"},
            .environment = {"A=b\xfe"},
            .directory = "/some where",
            .grace = std::chrono::milliseconds(1500),
            .host_timeout = std::chrono::seconds(7),
            .on_failure = OnFailure::restart,
            .bind = true,
            .output_in_colour = true};
}

TEST(PartTest, survives_encoding_as_one_line) {
    const std::string line = encode(example());
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    const Part part = decode_part(line).value();
    EXPECT_EQ(part.join, "nexar1.hunter2");
    EXPECT_EQ(part.world, 4U);
    EXPECT_EQ(part.first_rank, 2U);
    EXPECT_EQ(part.count, 2U);
    EXPECT_EQ(part.command, example().command);
    EXPECT_EQ(part.environment, example().environment);
    EXPECT_EQ(part.directory, "/some where");
    EXPECT_EQ(part.grace, std::chrono::milliseconds(1500));
    EXPECT_EQ(part.host_timeout, std::chrono::seconds(7));
    EXPECT_TRUE(part.output_in_colour);
    EXPECT_TRUE(part.bind);
    EXPECT_EQ(part.on_failure, OnFailure::restart);
    EXPECT_FALSE(part.errors_in_colour);
}

TEST(PartTest, rejects_invalid_parts_without_showing_them) {
    const auto refused = [](Part part) {
        const auto decoded = decode_part(encode(part));
        if (decoded) return false;
        EXPECT_EQ(decoded.error().code(), Errc::malformed);
        EXPECT_THAT(decoded.error().cause(), Not(HasSubstr("hunter2")));
        return true;
    };
    Part part = example();
    part.count = 3;
    EXPECT_TRUE(refused(part));
    part = example();
    part.count = 0;
    EXPECT_TRUE(refused(part));
    part = example();
    part.world = 0;
    EXPECT_TRUE(refused(part));
    part = example();
    part.command.clear();
    EXPECT_TRUE(refused(part));
    part = example();
    part.command[1] = std::string("a\0b", 3);
    EXPECT_TRUE(refused(part));
    part = example();
    part.grace = Duration(-1);
    EXPECT_TRUE(refused(part));
    part = example();
    part.host_timeout = Duration(0);
    EXPECT_TRUE(refused(part));
    part = example();
    part.on_failure = static_cast<OnFailure>(3);
    EXPECT_TRUE(refused(part));
    part = example();
    part.host_timeout = Duration::max();
    EXPECT_TRUE(refused(part));
    for (const char* line :
         {"", "{}", "[]", "{\"version\":1}", "{\"version\":4}", "nonsense hunter2",
          "{\"version\":2,"
          "\"join\":[256]}"}) {
        const auto decoded = decode_part(line);
        ASSERT_FALSE(decoded) << line;
        EXPECT_THAT(decoded.error().cause(), Not(HasSubstr("hunter2")));
    }
}

}  // namespace
}  // namespace nexar::run
