// Runs `nexar tune` with real processes and checks that nexar accepts the settings file it writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome run_nexar(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    environment.emplace_back("PATH=/usr/local/bin:/usr/bin:/bin");
    return run_program(NEXAR_COMMAND, std::move(arguments), std::move(environment));
}

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TuneCommand, writes_a_settings_file_that_nexar_accepts) {
    const TempDirectory directory;
    const std::string path = directory.path() + "/host.toml";
    const Outcome outcome = run_nexar({"tune", "-n", "2", "--seconds", "0.01", "-o", path});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(text_of(path), HasSubstr("protection full"));

    // Every rate comes from the file; none was rejected.
    const Outcome config = run_nexar({"config"}, {"NEXAR_CONFIG=" + path});
    ASSERT_EQ(config.exit_code, 0) << config.errors;
    for (const std::string setting :
         {"host_latency", "host_per_message", "host_bandwidth", "host_both_bandwidth", "host_fill",
          "fabric_reduce", "fabric_copy"}) {
        EXPECT_THAT(config.output, ContainsRegex(setting + " .*host\\.toml:[0-9]+"));
    }
    const Outcome explained =
        run_nexar({"explain", "all_reduce", "--hosts", "1"}, {"NEXAR_CONFIG=" + path});
    EXPECT_EQ(explained.exit_code, 0) << explained.errors;
}

// As on two machines: each rank has its own address.
TEST(TuneCommand, measures_the_fabric_between_machines) {
    const Outcome outcome = run_nexar(
        {"run", "-n", "2", "--", "/bin/sh", "-c",
         "NEXAR_LISTEN=127.0.0.$((NEXAR_RANK + 1)):0 exec " NEXAR_COMMAND " tune --seconds 0.01"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output,
                AllOf(ContainsRegex("fabric_latency = \"[1-9][0-9]*ns\"\n"),
                      ContainsRegex("fabric_per_message = \"[1-9][0-9]*ns\"\n"),
                      ContainsRegex("fabric_bandwidth = [1-9][0-9]+\n"),
                      ContainsRegex("fabric_both_bandwidth = [1-9][0-9]+\n"),
                      ContainsRegex("fabric_fill = [1-9][0-9]*\n"), Not(HasSubstr("host_"))));
}

TEST(TuneCommand, prints_the_settings_when_no_file_is_given) {
    const Outcome outcome = run_nexar({"tune", "-n", "3", "--seconds", "0.01", "--protection",
                                       "none", "--nexar-log-level=error"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("protection none"),
                                      ContainsRegex("\nhost_latency = \"[1-9][0-9]*ns\"\n"),
                                      ContainsRegex("\nhost_per_message = \"[1-9][0-9]*ns\"\n"),
                                      ContainsRegex("\nhost_bandwidth = [1-9][0-9]+\n"),
                                      ContainsRegex("\nhost_both_bandwidth = [1-9][0-9]+\n"),
                                      ContainsRegex("\nhost_fill = [1-9][0-9]*\n"),
                                      ContainsRegex("\nfabric_reduce = [1-9][0-9]+\n"),
                                      ContainsRegex("\nfabric_copy = [1-9][0-9]+\n")));
}

TEST(TuneCommand, does_not_overwrite_an_existing_file) {
    const TempDirectory directory;
    const std::string path = directory.path() + "/nexar.toml";
    std::ofstream(path) << "log_level = \"info\"\n";
    const Outcome outcome = run_nexar({"tune", "-n", "2", "--seconds", "0.01", "-o", path});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, HasSubstr("cannot write " + path));
    EXPECT_EQ(text_of(path), "log_level = \"info\"\n");
}

TEST(TuneCommand, reports_wrong_arguments_before_it_starts_anything) {
    const Outcome alone = run_nexar({"tune", "-n", "1"});
    EXPECT_EQ(alone.exit_code, 2);
    EXPECT_THAT(alone.errors, HasSubstr("between two ranks; give -n 2"));
    const Outcome no_time = run_nexar({"tune", "-n", "2", "--seconds", "0"});
    EXPECT_EQ(no_time.exit_code, 2);
    EXPECT_THAT(no_time.errors, HasSubstr("above 0"));
    const Outcome no_world = run_nexar({"tune"});
    EXPECT_EQ(no_world.exit_code, 1);
    EXPECT_THAT(no_world.errors, HasSubstr("nexar run"));
}

}  // namespace
}  // namespace nexar
