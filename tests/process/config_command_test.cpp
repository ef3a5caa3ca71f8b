// Runs the real nexar command with prepared files and variables.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nexar/version.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "process/program.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class NexarCommand : public testing::Test {
protected:
    NexarCommand() { environment_ = {"HOME=" + home_.path()}; }

    void SetUp() override {
        if (fs::exists("/etc/nexar.toml"))
            GTEST_SKIP() << "this machine has an /etc/nexar.toml, which the command would read";
    }

    std::string write(std::string_view name, std::string_view text) const {
        const fs::path path = home_ / name;
        fs::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }

    Outcome nexar(std::vector<std::string> arguments) const {
        return run_program(NEXAR_COMMAND, std::move(arguments), environment_);
    }

    TempDirectory home_;
    std::vector<std::string> environment_;
};

TEST_F(NexarCommand, prints_its_version) {
    const Outcome outcome = nexar({"--version"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.output, "nexar " + std::string(version()) + "\n");
    EXPECT_EQ(outcome.errors, "");
}

TEST_F(NexarCommand, prints_help) {
    const Outcome outcome = nexar({"--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("config"), HasSubstr("Exit codes: 0 success")));
}

TEST_F(NexarCommand, rejects_unknown_commands_and_flags) {
    const Outcome none = nexar({});
    EXPECT_EQ(none.exit_code, 2);
    EXPECT_THAT(none.errors, HasSubstr("A subcommand is required"));
    const Outcome misspelled = nexar({"confg"});
    EXPECT_EQ(misspelled.exit_code, 2);
    EXPECT_THAT(misspelled.errors, HasSubstr("confg"));
    const Outcome flag = nexar({"config", "--yaml"});
    EXPECT_EQ(flag.exit_code, 2);
    EXPECT_THAT(flag.errors, HasSubstr("--yaml"));
    EXPECT_EQ(nexar({"config", "--json", "--markdown"}).exit_code, 2);
    EXPECT_EQ(flag.output, "");
}

TEST_F(NexarCommand, config_shows_defaults_and_the_files_it_looked_for) {
    const Outcome outcome = nexar({"config"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.errors, "");
    EXPECT_THAT(outcome.output, StartsWith("setting "));
    EXPECT_THAT(outcome.output,
                ContainsRegex("\nlog_level +warning +default +local +The log contains"));
    EXPECT_THAT(outcome.output, HasSubstr("\nfiles, in order of precedence:\n  " + home_.path() +
                                          "/.config/nexar.toml (absent)\n"));
}

TEST_F(NexarCommand, config_shows_the_strongest_value_and_its_origin) {
    const std::string home_file =
        write(".config/nexar.toml", "log_rate_limit = 5\nrecorder_events = 9\n");
    const std::string named = write("named.toml", "\nrecorder_events = 8\n");
    environment_.push_back("NEXAR_CONFIG=" + named);
    environment_.emplace_back("NEXAR_LOG_LEVEL=error");
    const Outcome outcome = nexar({"config", "--nexar-pool-profile", "inference"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, ContainsRegex("\nlog_level +error +environment NEXAR_LOG_LEVEL "));
    EXPECT_THAT(outcome.output, ContainsRegex("\nlog_rate_limit +5 +file " + home_file + ":1 "));
    EXPECT_THAT(outcome.output, ContainsRegex("\nrecorder_events +8 +file " + named + ":2 "));
    EXPECT_THAT(outcome.output,
                ContainsRegex("\npool_profile +inference +command line --nexar-pool-profile "));
    EXPECT_THAT(outcome.output, HasSubstr("  " + named + " (read)\n  " + home_file + " (read)\n"));
}

TEST_F(NexarCommand, config_writes_json) {
    environment_.emplace_back("NEXAR_RECORDER_EVENTS=0");
    const Outcome outcome = nexar({"config", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto json = nlohmann::json::parse(outcome.output);
    for (const auto& setting : json.at("settings")) {
        if (setting.at("setting") != "recorder_events") continue;
        EXPECT_EQ(setting.at("value"), "0");
        EXPECT_EQ(setting.at("default"), "4096");
        EXPECT_EQ(setting.at("origin"), "environment NEXAR_RECORDER_EVENTS");
        EXPECT_EQ(setting.at("scope"), "local");
        EXPECT_EQ(setting.at("type"), "integer");
    }
    EXPECT_EQ(json.at("settings").size(), std::size(kSettings));
    EXPECT_EQ(json.at("files").at(0).at("found"), false);
}

TEST_F(NexarCommand, config_writes_valid_json_for_a_path_that_is_not_utf8) {
    environment_.push_back("NEXAR_CONFIG=" + write("\xff.toml", "recorder_events = 1\n"));
    const Outcome outcome = nexar({"config", "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_TRUE(nlohmann::json::accept(outcome.output));
}

TEST_F(NexarCommand, a_bad_value_is_an_error_with_setting_origin_and_choices) {
    environment_.emplace_back("NEXAR_LOG_LEVEL=debgu");
    const Outcome outcome = nexar({"config"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.output, "");
    EXPECT_EQ(
        outcome.errors,
        "nexar: bad_config: log_level (environment NEXAR_LOG_LEVEL): \"debgu\" is unknown, did "
        "you mean \"debug\"?; allowed: debug, info, warning, error, off\n");
}

TEST_F(NexarCommand, a_bad_file_is_an_error_with_its_line_number) {
    const std::string file = write(".config/nexar.toml", "\nlog_rate_limit = \"fast\"\n");
    const Outcome wrong_type = nexar({"config"});
    EXPECT_EQ(wrong_type.exit_code, 1);
    EXPECT_THAT(wrong_type.errors,
                HasSubstr("log_rate_limit (file " + file +
                          ":2): the string \"fast\" is not a valid integer; allowed: a "
                          "whole number from 0 to 100000 lines/s"));
    write(".config/nexar.toml", "log_levle = \"info\"\n");
    EXPECT_THAT(nexar({"config"}).errors, HasSubstr("did you mean log_level?"));
    write(".config/nexar.toml", "log_level = \n");
    const Outcome malformed = nexar({"config"});
    EXPECT_EQ(malformed.exit_code, 1);
    EXPECT_THAT(malformed.errors, HasSubstr("file " + file + ":1:"));
}

TEST_F(NexarCommand, a_named_file_must_exist) {
    environment_.push_back("NEXAR_CONFIG=" + (home_ / "gone.toml").string());
    const Outcome outcome = nexar({"config"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, HasSubstr("gone.toml (environment NEXAR_CONFIG): cannot be read"));
}

TEST_F(NexarCommand, an_unknown_nexar_flag_is_an_error) {
    const Outcome outcome = nexar({"config", "--nexar-log-lvel=debug"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, HasSubstr("did you mean --nexar-log-level?"));
}

TEST_F(NexarCommand, an_unknown_variable_is_a_warning_without_its_value) {
    environment_.emplace_back("NEXAR_JOB_SECRTE=hunter2");
    const Outcome outcome = nexar({"config"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.errors,
              "nexar warning environment variable NEXAR_JOB_SECRTE is not a setting and has no "
              "effect; did you mean NEXAR_JOB_SECRET?\n");
    EXPECT_THAT(outcome.output, Not(HasSubstr("hunter2")));
}

TEST_F(NexarCommand, the_manual_contains_the_settings_table) {
    const Outcome outcome = nexar({"config", "--markdown"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    std::ifstream manual(NEXAR_SOURCE_DIR "/docs/tuning.md");
    std::stringstream text;
    text << manual.rdbuf();
    ASSERT_THAT(outcome.output, StartsWith("| setting |"));
    EXPECT_THAT(text.str(), HasSubstr("\n" + outcome.output + "\n"))
        << "put the output of `nexar config --markdown` into docs/tuning.md";
}

TEST_F(NexarCommand, the_manual_table_does_not_depend_on_the_machine) {
    environment_.emplace_back("NEXAR_LOG_LEVEL=debgu");
    EXPECT_EQ(nexar({"config", "--markdown"}).exit_code, 0);
}

}  // namespace
}  // namespace nexar
