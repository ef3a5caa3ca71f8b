#pragma once

#include <cstdint>
#include <nexar/dtype.hpp>
#include <nexar/node.hpp>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/launch.hpp"
#include "schedule/choice.hpp"
#include "schedule/request.hpp"

namespace nexar::bench {

/// The arguments of `nexar bench`, as given on the command line.
struct Question {
    std::string subject{};
    Ranks ranks{};
    std::string smallest = "8";
    std::string largest = "64MiB";
    std::uint64_t factor = 2;
    std::string sizes{};  // replaces the three above
    std::uint64_t iterations = 20;
    std::uint64_t warmup = 5;
    std::optional<double> seconds{};
    std::string dtype = "f32";
    std::string redop = "sum";
    std::uint32_t root = 0;
    int check = 1;
    std::string format = "table";
    std::string json_path{};
    std::string memory = "private";
};

/// What is measured: a collective, or messages between ranks 0 and 1.
struct Subject {
    enum class Kind : std::uint8_t { collective, latency, bandwidth, exchange };

    Kind kind = Kind::collective;
    schedule::Collective operation = schedule::Collective::barrier;  // if it is a collective

    std::string_view name() const noexcept;
    bool is(schedule::Collective wanted) const noexcept {
        return kind == Kind::collective && operation == wanted;
    }
    bool reduces() const noexcept {
        return kind == Kind::collective && schedule::reduces(operation);
    }
    bool rooted() const noexcept { return kind == Kind::collective && schedule::rooted(operation); }
};

enum class Format : std::uint8_t { table, osu };

/// The parsed and checked Question.
struct Plan {
    Subject subject{};
    std::vector<std::uint64_t> sizes{};  // bytes, as nccl-tests counts them
    std::uint64_t iterations = 0;        // 0: as many as fit `seconds`
    std::uint64_t warmup = 0;
    std::optional<double> seconds{};  // time limit for the iterations of one size
    DType dtype = DType::f32;
    ReduceOp redop = ReduceOp::sum;
    std::uint32_t root = 0;
    bool check = true;
    Format format = Format::table;
    std::string json_path{};
    bool shared = false;              // inputs and outputs are in shared buffers
    const Node* allocator = nullptr;  // of shared buffers; set on ranks only
    schedule::Profile profile{};      // for choosing algorithms; set on ranks only
};

/// Fails with invalid_argument, naming the allowed values, or with unsupported.
Result<Plan> understood(const Question& question);

/// Fails with invalid_argument if a world of this size cannot run the plan.
Result<void> fits(const Plan& plan, std::uint32_t world);

/// "all_reduce, ..., barrier, latency, bandwidth, exchange"
std::string subject_names();

}  // namespace nexar::bench
