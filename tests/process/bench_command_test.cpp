// Runs `nexar bench` with real processes: it checks its data, and people and programs can read its
// output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"
#include "schedule/request.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Row = std::vector<std::string>;

// size count type redop root time(us) algbw busbw #wrong p50 p99 cpu/GB %ceil algorithm
constexpr std::size_t kSize = 0;
constexpr std::size_t kCount = 1;
constexpr std::size_t kType = 2;
constexpr std::size_t kRedop = 3;
constexpr std::size_t kRoot = 4;
constexpr std::size_t kWrong = 8;
constexpr std::size_t kCpu = 11;
constexpr std::size_t kCeiling = 12;
constexpr std::size_t kAlgorithm = 13;
constexpr std::size_t kColumns = 14;

Outcome bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    return run_program(NEXAR_COMMAND, std::move(arguments),
                       {"HOME=/nowhere", "PATH=/usr/local/bin:/usr/bin:/bin"});
}

/// Runs few iterations; the tests ignore the measured times.
Outcome short_bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--iters", "3", "--warmup", "1"});
    return bench(std::move(arguments));
}

std::vector<Row> rows_of(const std::string& output) {
    std::vector<Row> rows;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream words(line);
        Row row;
        for (std::string word; words >> word;) row.push_back(word);
        rows.push_back(row);
    }
    return rows;
}

std::vector<std::string> column(const std::vector<Row>& rows, std::size_t number) {
    std::vector<std::string> cells;
    for (const Row& row : rows) cells.push_back(row.at(number));
    return cells;
}

std::vector<std::string> all_subjects() {
    std::vector<std::string> subjects{"latency", "bandwidth", "exchange"};
    for (const auto operation : schedule::kCollectives)
        subjects.emplace_back(schedule::name(operation));
    return subjects;
}

std::string refusal(std::vector<std::string> arguments, int exit_code = 2) {
    const Outcome outcome = bench(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, exit_code);
    EXPECT_EQ(outcome.output, "");
    return outcome.errors;
}

class EverySubject : public testing::TestWithParam<std::string> {};

TEST_P(EverySubject, gives_correct_data_with_two_ranks) {
    const Outcome outcome = short_bench({GetParam(), "-n", "2", "--sizes", "8 1000 100KiB"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, "");
    const auto rows = rows_of(outcome.output);
    EXPECT_THAT(rows, AllOf(SizeIs(GetParam() == "barrier" ? 1 : 3), Each(SizeIs(kColumns))));
    EXPECT_THAT(column(rows, kWrong), Each(std::string("0")));
    EXPECT_THAT(outcome.output, HasSubstr("# Out of bounds values : 0 OK\n"));
}

INSTANTIATE_TEST_SUITE_P(BenchCommand, EverySubject, testing::ValuesIn(all_subjects()),
                         [](const auto& subject) { return subject.param; });

TEST(BenchCommand, doubles_the_size_from_smallest_to_largest) {
    const Outcome outcome =
        short_bench({"broadcast", "-n", "2", "-b", "1KiB", "-e", "8KiB", "-r", "1", "-d", "f64"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto rows = rows_of(outcome.output);
    EXPECT_THAT(column(rows, kSize), ElementsAre("1024", "2048", "4096", "8192"));
    EXPECT_THAT(column(rows, kCount), ElementsAre("128", "256", "512", "1024"));
    EXPECT_THAT(column(rows, kType), Each(std::string("f64")));
    EXPECT_THAT(column(rows, kRedop), Each(std::string("none")));
    EXPECT_THAT(column(rows, kRoot), Each(std::string("1")));
}

TEST(BenchCommand, rounds_sizes_to_equal_chunks_for_three_ranks) {
    const Outcome outcome =
        short_bench({"all_to_all", "-n", "3", "--sizes", "4 1000 64KiB", "-d", "i32"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto rows = rows_of(outcome.output);
    EXPECT_THAT(column(rows, kCount), ElementsAre("3", "249", "16383"));
    EXPECT_THAT(column(rows, kSize), ElementsAre("12", "996", "65532"));
    EXPECT_THAT(column(rows, kWrong), Each(std::string("0")));
}

TEST(BenchCommand, gives_correct_data_when_ranks_forward_segments_early) {
    for (const char* const operation : {"all_reduce", "scan", "exclusive_scan", "broadcast"}) {
        const Outcome outcome =
            short_bench({operation, "-n", "3", "--sizes", "256KiB 1MiB 4MiB", "-d", "u32"});
        EXPECT_EQ(outcome.exit_code, 0) << operation << ": " << outcome.errors;
        EXPECT_THAT(column(rows_of(outcome.output), kWrong), Each(std::string("0"))) << operation;
    }
}

TEST(BenchCommand, checks_every_given_type_and_operator) {
    const std::vector<std::pair<std::string, std::string>> pairs{
        {"i8", "sum"},      {"u8", "product"},  {"i16", "min"},
        {"u16", "bit_xor"}, {"i64", "average"}, {"u64", "logical_and"},
        {"f16", "sum"},     {"bf16", "avg"},    {"u32", "prod"}};
    for (const auto& [type, op] : pairs) {
        const Outcome outcome =
            short_bench({"reduce_scatter", "-n", "3", "--sizes", "3000", "-d", type, "-o", op});
        ASSERT_EQ(outcome.exit_code, 0) << type << ' ' << op << ": " << outcome.errors;
        EXPECT_EQ(rows_of(outcome.output).at(0).at(kWrong), "0") << type << ' ' << op;
    }
}

TEST(BenchCommand, a_single_rank_runs_collectives_but_not_latency) {
    const Outcome outcome = short_bench({"all_reduce", "-n", "1", "--sizes", "64KiB"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(rows_of(outcome.output).at(0).at(kWrong), "0");
    EXPECT_THAT(outcome.output, StartsWith("# nexar bench all_reduce: 1 rank, link none"));
    EXPECT_THAT(refusal({"latency", "-n", "1"}), HasSubstr("between two ranks"));
}

TEST(BenchCommand, runs_as_a_rank_under_a_launcher) {
    const Outcome outcome = run_program(NEXAR_COMMAND,
                                        {"run", "-n", "2", "--nexar-protection=none", "--",
                                         NEXAR_COMMAND, "bench", "all_gather", "--sizes", "4KiB"},
                                        {"HOME=/nowhere", "PATH=/usr/local/bin:/usr/bin:/bin"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output,
                AllOf(StartsWith("[0] # nexar bench all_gather: 2 ranks, link shm+quic, protection "
                                 "none\n"),
                      Not(HasSubstr("[1]")), HasSubstr("values : 0 OK\n")));
}

TEST(BenchCommand, protection_applies_to_the_whole_cluster) {
    for (const char* const flag : {"--protection=none", "--nexar-protection=none"}) {
        const Outcome outcome = short_bench({"all_reduce", "-n", "2", "--sizes", "1KiB", flag});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        EXPECT_THAT(outcome.output, HasSubstr("2 ranks, link shm+quic, protection none\n"));
    }
}

TEST(BenchCommand, a_forced_link_is_the_one_that_pairs_use) {
    const Outcome quic =
        short_bench({"all_reduce", "-n", "3", "--sizes", "1KiB", "--link", "quic"});
    EXPECT_EQ(quic.exit_code, 0) << quic.errors;
    EXPECT_THAT(quic.output, StartsWith("# nexar bench all_reduce: 3 ranks, link quic, "));
    // Where ranks cannot share memory, the command says so; it never measures another link instead.
    const Outcome shm = short_bench({"all_reduce", "-n", "2", "--sizes", "1KiB", "--link", "shm"});
    if (shm.exit_code == 0) {
        EXPECT_THAT(shm.output, StartsWith("# nexar bench all_reduce: 2 ranks, link shm"));
    } else {
        EXPECT_EQ(shm.exit_code, 1);
        EXPECT_EQ(shm.output, "");
        EXPECT_THAT(shm.errors, HasSubstr("shm"));
    }
}

TEST(BenchCommand, shows_processor_time_and_the_part_of_the_memory_ceiling) {
    // 200 iterations of 1 MiB take tens of milliseconds, above the resolution of processor time.
    const Outcome outcome =
        bench({"all_reduce", "-n", "2", "--sizes", "1MiB", "--iters", "200", "--warmup", "1"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const Row row = rows_of(outcome.output).at(0);
    EXPECT_GT(std::stod(row.at(kCpu)), 0.0);
    EXPECT_GT(std::stod(row.at(kCeiling)), 0.0);
    const Row barrier = rows_of(short_bench({"barrier", "-n", "2"}).output).at(0);
    EXPECT_EQ(barrier.at(kCpu), "-") << "a barrier moves no data";
    EXPECT_EQ(barrier.at(kCeiling), "-");
}

TEST(BenchCommand, writes_a_json_object_for_each_row) {
    const TempDirectory directory;
    const std::string path = directory.path() + "/rows.json";
    const Outcome outcome = short_bench(
        {"all_reduce", "-n", "2", "--sizes", "1KiB 8KiB", "--link", "quic", "--json", path});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    std::ifstream file(path);
    std::vector<nlohmann::json> objects;
    for (std::string line; std::getline(file, line);)
        objects.push_back(nlohmann::json::parse(line));
    ASSERT_THAT(objects, SizeIs(2));
    for (const auto& object : objects) {
        EXPECT_EQ(object.at("op"), "all_reduce");
        EXPECT_EQ(object.at("ranks"), 2);
        EXPECT_GT(object.at("p50_us"), 0.0);
        EXPECT_GE(object.at("p99_us"), object.at("p50_us"));
        EXPECT_GT(object.at("algbw_GBps"), 0.0);
        // 2(n-1)/n of two ranks is 1.
        EXPECT_EQ(object.at("busbw_GBps"), object.at("algbw_GBps"));
        EXPECT_EQ(object.at("wrong"), 0);
        EXPECT_EQ(object.at("link"), "quic");
        EXPECT_GE(object.at("cpu_s_per_GB"), 0.0);
        EXPECT_GT(object.at("copy_GBps"), 0.0);
        EXPECT_GT(object.at("ceiling_percent"), 0.0);
        // Every rank reads and writes 1 or 8 KiB.
        const double copied = 4 * object.at("bytes").get<double>();
        const double seconds = copied / (object.at("copy_GBps").get<double>() * 1e9);
        EXPECT_NEAR(object.at("ceiling_percent").get<double>(),
                    100 * seconds / (object.at("p50_us").get<double>() * 1e-6), 1e-6);
    }
    EXPECT_EQ(objects[0].at("bytes"), 1024);
    EXPECT_EQ(objects[1].at("bytes"), 8192);
    EXPECT_EQ(objects[1].at("algorithm"), rows_of(outcome.output).at(1).at(kAlgorithm));
}

TEST(BenchCommand, gives_correct_data_in_shared_buffers) {
    for (const auto operation : schedule::kCollectives) {
        const Outcome outcome =
            short_bench({std::string(schedule::name(operation)), "-n", "3", "--sizes",
                         "1KiB 200KB 3MiB", "--link", "shm", "--memory", "shared"});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        EXPECT_THAT(outcome.output, HasSubstr(", shared buffers\n"));
        EXPECT_THAT(column(rows_of(outcome.output), kWrong), Each("0"));
    }
    EXPECT_THAT(refusal({"all_reduce", "-n", "2", "--memory", "mine"}),
                HasSubstr("private, shared"));
}

TEST(BenchCommand, writes_two_columns_like_osu) {
    const Outcome latency =
        short_bench({"latency", "-n", "2", "--sizes", "8 1KiB", "--format", "osu"});
    EXPECT_EQ(latency.exit_code, 0) << latency.errors;
    EXPECT_THAT(latency.output, HasSubstr("\n# Size      Avg Latency(us)\n"));
    EXPECT_THAT(rows_of(latency.output), AllOf(SizeIs(2), Each(SizeIs(2))));
    EXPECT_THAT(column(rows_of(latency.output), kSize), ElementsAre("8", "1024"));
    const Outcome bandwidth =
        short_bench({"bandwidth", "-n", "2", "--sizes", "8", "--format", "osu"});
    EXPECT_THAT(bandwidth.output, HasSubstr("\n# Size      Bandwidth (MB/s)\n"));
}

TEST(BenchCommand, respects_a_time_limit) {
    const TempDirectory directory;
    const std::string path = directory.path() + "/rows.json";
    const Outcome outcome = bench({"all_reduce", "-n", "2", "--sizes", "1MiB", "--iters", "0",
                                   "--seconds", "0.000001", "--json", path});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    std::ifstream file(path);
    EXPECT_EQ(nlohmann::json::parse(file).at("iterations"), 1);
}

TEST(BenchCommand, skips_the_data_check_on_request) {
    const Outcome outcome = short_bench({"all_reduce", "-n", "2", "--sizes", "64", "-c", "0"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(rows_of(outcome.output).at(0).at(kWrong), "N/A");
    EXPECT_THAT(outcome.output, Not(HasSubstr("Out of bounds")));
}

TEST(BenchCommand, reports_wrong_arguments_before_it_starts_anything) {
    EXPECT_THAT(refusal({"allreduce", "-n", "2"}),
                HasSubstr("\"allreduce\" is not a valid operation; allowed: all_reduce, reduce"));
    EXPECT_THAT(refusal({"allreduce", "-n", "2"}),
                HasSubstr("barrier, latency, bandwidth, exchange"));
    EXPECT_THAT(refusal({"barrier", "-n", "2", "--link", "tcp"}), HasSubstr("auto, quic, shm"));
    EXPECT_THAT(refusal({"barrier", "-n", "0"}), HasSubstr("from 1 to 16384"));
    EXPECT_THAT(refusal({"reduce", "-n", "2", "-r", "2"}), HasSubstr("0 to 1"));
    EXPECT_THAT(refusal({"reduce", "-n", "2", "-d", "f33"}), HasSubstr("f32, f64"));
    EXPECT_THAT(refusal({"reduce", "-n", "2", "-o", "bit_or"}), HasSubstr("bit_or"));
    EXPECT_THAT(refusal({"scan", "-n", "2", "-o", "average"}),
                HasSubstr("cannot compute averages"));
    EXPECT_THAT(refusal({"reduce", "-n", "2", "-b", "2MiB", "-e", "1MiB"}), HasSubstr("2MiB"));
    EXPECT_THAT(refusal({"reduce", "-n", "2", "--sizes", "8 much"}), HasSubstr("much"));
    EXPECT_THAT(refusal({"reduce", "-n", "2", "--iters", "0"}), HasSubstr("--seconds"));
    EXPECT_THAT(refusal({"reduce", "-n", "2", "--format", "xml"}), HasSubstr("table, osu"));
    EXPECT_THAT(refusal({"reduce"}, 1), HasSubstr("nexar run"));
}

}  // namespace
}  // namespace nexar
