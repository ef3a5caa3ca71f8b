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

TEST(TuneCommand, measures_collectives_in_shared_memory) {
    const TempDirectory directory;
    const std::string path = directory.path() + "/memory.toml";
    const Outcome outcome =
        run_nexar({"tune", "-n", "3", "--link", "shm", "--seconds", "0.01", "-o", path});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(text_of(path), AllOf(HasSubstr("In memory that the 3 ranks of a machine share"),
                                     ContainsRegex("\nhost_latency = \"[1-9][0-9]*ns\"\n"),
                                     ContainsRegex("\nmemory_latency = \"[1-9][0-9]*ns\"\n"),
                                     ContainsRegex("\nmemory_per_peer = \"[0-9]+ns\"\n"),
                                     ContainsRegex("\nmemory_put = [1-9][0-9]+\n"),
                                     ContainsRegex("\nmemory_read = [1-9][0-9]+\n"),
                                     Not(HasSubstr("fabric_latency"))));

    // Every rate comes from the file, and the choice uses them.
    const std::vector<std::string> environment{"NEXAR_CONFIG=" + path};
    const Outcome config = run_nexar({"config"}, environment);
    ASSERT_EQ(config.exit_code, 0) << config.errors;
    for (const std::string setting :
         {"memory_latency", "memory_per_peer", "memory_put", "memory_read", "host_bandwidth"}) {
        EXPECT_THAT(config.output, ContainsRegex(setting + " .*memory\\.toml:[0-9]+"));
    }
    const auto explained = [&](std::vector<std::string> variables) {
        return run_nexar({"explain", "barrier", "--hosts", "1x3", "--memory", "8MiB", "--algorithm",
                          "slots"},
                         std::move(variables))
            .output;
    };
    EXPECT_THAT(explained(environment), HasSubstr("over 3 ranks: slots in shared memory"));
    EXPECT_THAT(explained({"NEXAR_MEMORY_LATENCY=500us"}),
                HasSubstr("slots in shared memory, 500.1 us"));
}

// As on two machines with two ranks each: the ranks of a machine have the same address.
TEST(TuneCommand, measures_both_kinds_of_links_in_a_world_that_spans_machines) {
    const Outcome outcome =
        run_nexar({"run", "-n", "4", "--", "/bin/sh", "-c",
                   "NEXAR_LISTEN=127.0.0.$((NEXAR_RANK / 2 + 1)):0 exec " NEXAR_COMMAND
                   " tune --seconds 0.01"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(ContainsRegex(" fabric_latency = \"[1-9][0-9]*ns\"\n"),
                                      ContainsRegex(" fabric_bandwidth = [1-9][0-9]+\n"),
                                      ContainsRegex(" host_latency = \"[1-9][0-9]*ns\"\n"),
                                      ContainsRegex(" host_bandwidth = [1-9][0-9]+\n"),
                                      ContainsRegex(" fabric_reduce = [1-9][0-9]+\n"),
                                      ContainsRegex(" fabric_copy = [1-9][0-9]+\n")));
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
