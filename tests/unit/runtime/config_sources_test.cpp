#include "runtime/config_sources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nexar/log.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// Each test has its own directory.
class ConfigSourcesTest : public testing::Test {
protected:
    std::string write(std::string_view name, std::string_view text) const {
        const fs::path path = root_ / name;
        fs::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }
    std::string path(std::string_view name) const { return (root_ / name).string(); }

    static std::string why_not(const std::vector<ConfigFilePath>& paths) {
        const auto files = read_config_files(paths);
        if (files) return "the files were read";
        EXPECT_EQ(files.error().code(), Errc::bad_config);
        return files.error().cause();
    }

    TempDirectory root_;
};

/// A command line as main() receives it.
class CommandLine {
public:
    explicit CommandLine(std::vector<std::string> arguments) : storage_(std::move(arguments)) {
        for (std::string& argument : storage_) pointers_.push_back(argument.data());
        pointers_.push_back(nullptr);
        argc_ = static_cast<int>(storage_.size());
    }

    std::vector<ConfigFlag> take() { return take_flags(argc_, pointers_.data()); }

    std::vector<std::string> left() const {
        EXPECT_EQ(pointers_[static_cast<std::size_t>(argc_)], nullptr);
        return {pointers_.begin(), pointers_.begin() + argc_};
    }

private:
    std::vector<std::string> storage_;
    std::vector<char*> pointers_;
    int argc_ = 0;
};

TEST(TakeFlags, removes_flags_and_values_from_argv) {
    CommandLine line({"prog", "--nexar-log-level", "debug", "in", "--nexar-pool-profile=training",
                      "-x", "--", "--nexar-y"});
    const auto flags = line.take();
    EXPECT_THAT(line.left(), ElementsAre("prog", "in", "-x", "--", "--nexar-y"));
    ASSERT_EQ(flags.size(), 2U);
    EXPECT_EQ(flags[0].name, "--nexar-log-level");
    EXPECT_EQ(flags[0].value, "debug");
    EXPECT_EQ(flags[1].value, "training");
}

TEST(TakeFlags, leaves_a_command_line_without_flags_alone) {
    CommandLine none({});
    EXPECT_THAT(none.take(), IsEmpty());
    EXPECT_THAT(none.left(), IsEmpty());
    CommandLine bare({"prog"});
    EXPECT_THAT(bare.take(), IsEmpty());
    EXPECT_THAT(bare.left(), ElementsAre("prog"));
    CommandLine other({"prog", "a", "--b"});
    EXPECT_THAT(other.take(), IsEmpty());
    EXPECT_THAT(other.left(), ElementsAre("prog", "a", "--b"));
}

TEST(ReadEnvironment, reads_home_and_variables_that_start_with_nexar) {
    ::setenv("NEXAR_LOG_LEVEL", "a=b", 1);
    ::setenv("NOT_NEXAR_LOG_LEVEL", "x", 1);
    ::setenv("HOME", "/home/someone", 1);
    std::vector<std::string> found;
    for (const NamedValue& variable : read_environment()) {
        if (variable.name != "NEXAR_TEST_SEED")
            found.push_back(variable.name + " " + variable.value);
    }
    EXPECT_THAT(found, testing::UnorderedElementsAre("NEXAR_LOG_LEVEL a=b", "HOME /home/someone"));
    ::unsetenv("NEXAR_LOG_LEVEL");
}

TEST(ConfigFilePaths, come_from_the_environment_then_home_then_the_system) {
    const std::vector<NamedValue> environment = {{"HOME", "/home/u"},
                                                 {"NEXAR_CONFIG", "mine.toml"}};
    const auto paths = config_file_paths(environment);
    ASSERT_EQ(paths.size(), 3U);
    EXPECT_EQ(paths[0].path, "mine.toml");
    EXPECT_TRUE(paths[0].required);
    EXPECT_EQ(paths[1].path, "/home/u/.config/nexar.toml");
    EXPECT_FALSE(paths[1].required);
    EXPECT_EQ(paths[2].path, "/etc/nexar.toml");
    EXPECT_FALSE(paths[2].required);
}

TEST(ConfigFilePaths, omit_a_missing_home) {
    EXPECT_EQ(config_file_paths({}).size(), 1U);
    EXPECT_EQ(config_file_paths(std::vector<NamedValue>{{"HOME", ""}}).size(), 1U);
    EXPECT_EQ(config_file_paths(std::vector<NamedValue>{{"HOME", "relative"}}).size(), 1U);
}

TEST_F(ConfigSourcesTest, reads_existing_files_in_order) {
    const std::string strong = write("a.toml", "log_level = \"debug\"\n");
    const std::string weak = write("b.toml", "");
    const auto files = read_config_files(std::vector<ConfigFilePath>{
        {.path = strong, .required = true}, {.path = path("absent.toml")}, {.path = weak}});
    ASSERT_TRUE(files) << files.error().what();
    ASSERT_EQ(files->size(), 2U);
    EXPECT_EQ((*files)[0].path, strong);
    EXPECT_EQ((*files)[0].text, "log_level = \"debug\"\n");
    EXPECT_EQ((*files)[1].text, "");
}

TEST_F(ConfigSourcesTest, a_path_through_a_non_directory_counts_as_absent) {
    const auto files =
        read_config_files(std::vector<ConfigFilePath>{{.path = "/dev/null/.config/nexar.toml"}});
    ASSERT_TRUE(files) << files.error().what();
    EXPECT_THAT(*files, IsEmpty());
}

TEST_F(ConfigSourcesTest, a_file_named_by_the_user_must_exist) {
    EXPECT_EQ(why_not({{.path = path("mine.toml"), .required = true}}),
              "file " + path("mine.toml") +
                  " (environment NEXAR_CONFIG): cannot be read: No such file or directory");
    EXPECT_THAT(why_not({{.path = "", .required = true}}), HasSubstr("NEXAR_CONFIG: is empty"));
}

TEST_F(ConfigSourcesTest, an_existing_file_must_be_readable) {
    fs::create_symlink(path("loop.toml"), path("loop.toml"));
    EXPECT_THAT(why_not({{.path = path("loop.toml")}}), HasSubstr("cannot be read"));
    if (::geteuid() == 0) return;  // root may read everything
    const std::string closed = write("closed.toml", "");
    fs::permissions(closed, fs::perms::none);
    EXPECT_THAT(why_not({{.path = closed}}), HasSubstr("cannot be read: Permission denied"));
}

TEST_F(ConfigSourcesTest, only_regular_files_are_read) {
    fs::create_directory(path("directory.toml"));
    EXPECT_THAT(why_not({{.path = path("directory.toml")}}), HasSubstr("is not a regular file"));
    ASSERT_EQ(::mkfifo(path("pipe.toml").c_str(), 0600), 0);
    EXPECT_THAT(why_not({{.path = path("pipe.toml")}}), HasSubstr("is not a regular file"));
    EXPECT_THAT(why_not({{.path = "/dev/zero"}}), HasSubstr("is not a regular file"));
}

TEST_F(ConfigSourcesTest, a_file_may_have_at_most_one_mebibyte) {
    const std::string full = write("full.toml", std::string(1U << 20U, '\n'));
    EXPECT_TRUE(read_config_files(std::vector<ConfigFilePath>{{.path = full}}));
    const std::string over = write("over.toml", std::string((1U << 20U) + 1, '\n'));
    EXPECT_THAT(why_not({{.path = over}}), HasSubstr("larger than the maximum of 1 MiB"));
}

TEST_F(ConfigSourcesTest, names_every_file_that_cannot_be_read) {
    fs::create_directory(path("d.toml"));
    EXPECT_THAT(why_not({{.path = path("a.toml"), .required = true}, {.path = path("d.toml")}}),
                AllOf(StartsWith("2 problems:"), HasSubstr("a.toml"), HasSubstr("d.toml")));
}

TEST_F(ConfigSourcesTest, load_config_combines_all_sources) {
    const std::string home_file =
        write("home/.config/nexar.toml",
              "log_rate_limit = 7\nlog_level = \"error\"\nrecorder_events = 1\n");
    const std::string named = write("named.toml", "\nrecorder_events = 2\n");
    ::setenv("HOME", path("home").c_str(), 1);
    ::setenv("NEXAR_CONFIG", named.c_str(), 1);
    ::setenv("NEXAR_LOG_LEVEL", "info", 1);
    ::setenv("NEXAR_LOG_LEVLE", "debug", 1);
    std::vector<std::string> lines;
    set_log_sink([&lines](const LogRecord& record) { lines.emplace_back(record.text); });
    const auto loaded = load_config({}, {{.name = "--nexar-pool-profile", .value = "inference"}});
    set_log_sink({});
    for (const char* name : {"NEXAR_CONFIG", "NEXAR_LOG_LEVEL", "NEXAR_LOG_LEVLE"})
        ::unsetenv(name);

    ASSERT_TRUE(loaded) << loaded.error().what();
    const Config& config = loaded->config;
    EXPECT_EQ(to_text(config.entry("log_rate_limit").origin), "file " + home_file + ":1");
    EXPECT_EQ(recorder_options(config).events_per_thread, 2U);
    EXPECT_EQ(to_text(config.entry("recorder_events").origin), "file " + named + ":2");
    EXPECT_EQ(config.choice("pool_profile"), "inference");
    EXPECT_EQ(log_level(), LogLevel::info) << "the log follows the configuration";
    EXPECT_THAT(lines, ElementsAre(HasSubstr("did you mean NEXAR_LOG_LEVEL?")));
    ASSERT_EQ(loaded->files.size(), 3U);
    EXPECT_TRUE(loaded->files[0].found);
    EXPECT_TRUE(loaded->files[1].found);
    EXPECT_EQ(loaded->files[2].path, "/etc/nexar.toml");
}

TEST_F(ConfigSourcesTest, load_config_rejects_an_invalid_file) {
    const std::string named = write("named.toml", "log_level = 3\n");
    ::setenv("HOME", path("home").c_str(), 1);
    ::setenv("NEXAR_CONFIG", named.c_str(), 1);
    const auto loaded = load_config({}, {});
    ::unsetenv("NEXAR_CONFIG");
    ASSERT_FALSE(loaded);
    EXPECT_EQ(
        loaded.error().cause(),
        "log_level (file " + named +
            ":1): the integer 3 is not a valid choice; allowed: debug, info, warning, error, off");
}

}  // namespace
}  // namespace nexar
