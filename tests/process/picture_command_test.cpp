// The pictures in docs/images are what `nexar explain --picture` draws.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "process/program.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

using ::testing::HasSubstr;

struct Picture {
    std::string file;
    std::string operation;
    std::string algorithm;
};

std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ExplainPictures, in_the_documentation_are_up_to_date) {
    const TempDirectory directory;
    for (const Picture& picture :
         {Picture{"ring.svg", "all_reduce", "ring"}, Picture{"tree.svg", "broadcast", "binomial"},
          Picture{"halving_doubling.svg", "all_reduce", "halving_doubling"}}) {
        const std::filesystem::path drawn = directory / picture.file;
        const std::vector<std::string> arguments{"explain",   picture.operation, "--world",
                                                 "4",         "--algorithm",     picture.algorithm,
                                                 "--picture", drawn.string()};
        const Outcome outcome = run_program(NEXAR_COMMAND, arguments, {});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
        const std::string kept = "docs/images/" + picture.file;
        EXPECT_TRUE(contents(drawn) == contents(std::string(NEXAR_SOURCE_DIR "/") + kept))
            << kept << " is out of date; run `nexar explain " << picture.operation
            << " --world 4 --algorithm " << picture.algorithm << " --picture " << kept << "`";
    }
}

TEST(ExplainPictures, are_refused_with_the_reason) {
    const auto refusal = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"explain", "all_reduce"});
        const Outcome outcome = run_program(NEXAR_COMMAND, arguments, {});
        EXPECT_EQ(outcome.exit_code, 1);
        return outcome.errors;
    };
    EXPECT_THAT(refusal({"--world", "9", "--picture", "/dev/null"}),
                HasSubstr("--picture draws at most 8 ranks, but the world has 9"));
    EXPECT_THAT(refusal({"--picture", "/nowhere/ring.svg"}),
                HasSubstr("cannot write the picture to /nowhere/ring.svg"));
}

}  // namespace
}  // namespace nexar
