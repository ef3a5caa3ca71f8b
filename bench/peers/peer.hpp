#pragma once

// Code shared by the programs of all peers: the command line, the data, the clock and the rows.
// Each peer is measured exactly like `nexar bench`: sizes are counted in the same way, a barrier
// precedes each iteration if a rank could run ahead, and the largest of the ranks' medians counts.
//
// Uses standard C++ only: no peer may be built with parts of nexar.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace peers {

struct Options {
    std::vector<std::string> operations{};
    std::vector<std::uint64_t> sizes{};
    double seconds = 0.5;  // time limit for the iterations of one row
    std::uint64_t warmup = 5;
    int ranks = 2;  // for peers without a launcher
};

inline std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

inline Options parse(int argc, char** argv) {
    Options options;
    const std::map<std::string, std::function<void(const std::string&)>> takers{
        {"--operations", [&](const std::string& text) { options.operations = words_of(text); }},
        {"--sizes",
         [&](const std::string& text) {
             for (const std::string& word : words_of(text)) {
                 options.sizes.push_back(std::stoull(word));
             }
         }},
        {"--seconds", [&](const std::string& text) { options.seconds = std::stod(text); }},
        {"--warmup", [&](const std::string& text) { options.warmup = std::stoull(text); }},
        {"--ranks", [&](const std::string& text) { options.ranks = std::stoi(text); }}};
    for (int i = 1; i < argc; i += 2) {
        const auto taker = takers.find(argv[i]);
        if (taker == takers.end() || i + 1 == argc) {
            throw std::runtime_error("unknown option or missing value: " + std::string(argv[i]));
        }
        taker->second(argv[i + 1]);
    }
    return options;
}

/// One operation of one size on one rank, with f32, sums and root 0. Sizes are those of nccl-tests.
struct Cell {
    std::string operation{};
    std::uint64_t count = 0;  // elements of the whole vector
    std::uint64_t chunk = 0;  // elements per rank if the vector is divided
    int rank = 0;
    int world = 1;
    std::vector<float> input{};
    std::vector<float> output{};

    bool is(const char* name) const { return operation == name; }
    bool is_divided() const {
        return is("all_gather") || is("gather") || is("scatter") || is("reduce_scatter") ||
               is("all_to_all");
    }
    bool is_message() const { return is("latency") || is("bandwidth"); }
    bool runs_ahead() const {
        return is("reduce") || is("broadcast") || is("gather") || is("scatter") || is("scan") ||
               is("exclusive_scan");
    }
    std::uint64_t bytes() const { return count * sizeof(float); }

    static float element(int rank, std::uint64_t index) {
        std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15U +
                          static_cast<std::uint64_t>(rank) * 0xc2b2ae3d27d4eb4fU;
        x = (x ^ (x >> 29U)) * 0xbf58476d1ce4e5b9U;
        return static_cast<float>(x >> 54U);  // sums of these are exact
    }

    /// Fills the inputs, and fills the outputs with values that cannot be a correct result, except
    /// for the root of a broadcast.
    void fill() {
        for (std::uint64_t i = 0; i < input.size(); ++i) input[i] = element(rank, i);
        std::fill(output.begin(), output.end(), -1.0F);
        if (is("broadcast") && rank == 0) output = input;
    }

    /// The correct value of each element of the output. Looks at the operation once, because
    /// comparing its name for every element would take longer than the measurement.
    std::function<float(std::uint64_t)> expected() const {
        const std::uint64_t part = chunk;
        const std::uint64_t own = static_cast<std::uint64_t>(rank) * part;
        const int from = is_message() && rank == 0 ? 1 : 0;
        if (is("scatter")) return [=](std::uint64_t i) { return element(0, own + i); };
        if (is("broadcast") || is_message()) {
            return [=](std::uint64_t i) { return element(from, i); };
        }
        if (is("all_gather") || is("gather")) {
            return [=](std::uint64_t i) { return element(static_cast<int>(i / part), i % part); };
        }
        if (is("all_to_all")) {
            return [=](std::uint64_t i) {
                return element(static_cast<int>(i / part), own + i % part);
            };
        }
        const int end = is("scan") ? rank + 1 : is("exclusive_scan") ? rank : world;
        const std::uint64_t begin = is("reduce_scatter") ? own : 0;
        return [=](std::uint64_t i) {
            float sum = 0;
            for (int one = 0; one < end; ++one) sum += element(one, begin + i);
            return sum;
        };
    }

    std::uint64_t wrong() const {
        if (is("barrier")) return 0;
        if ((is("reduce") || is("gather")) && rank != 0) return 0;
        if (is("exclusive_scan") && rank == 0) return 0;
        if (is("bandwidth") && rank != 1) return 0;
        if (is("latency") && rank > 1) return 0;
        const std::uint64_t length = is("scatter") || is("reduce_scatter") ? chunk : output.size();
        const auto right = expected();
        std::uint64_t found = 0;
        for (std::uint64_t i = 0; i < length; ++i) {
            if (output[i] != right(i)) ++found;
        }
        return found;
    }
};

inline Cell cell_of(const std::string& operation, std::uint64_t size, int rank, int world) {
    Cell cell;
    cell.operation = operation;
    cell.rank = rank;
    cell.world = world;
    if (cell.is("barrier")) return cell;
    const std::uint64_t parts = cell.is_divided() ? static_cast<std::uint64_t>(world) : 1;
    cell.chunk = std::max<std::uint64_t>(1, size / sizeof(float) / parts);
    cell.count = cell.chunk * parts;
    cell.input.resize(cell.count);
    cell.output.resize(cell.count);
    return cell;
}

/// A way to run an operation: the name of an algorithm, and a function that runs it once.
struct Way {
    std::string name{};
    std::function<void()> run{};
};

inline constexpr int kWindow = 64;  // messages in flight in "bandwidth"

/// The interface of a peer.
class Peer {
public:
    Peer() = default;
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    virtual ~Peer() = default;

    virtual int rank() const = 0;
    virtual int world() const = 0;
    virtual void barrier() = 0;
    virtual double largest_of_all(double value) = 0;
    /// All ways to run this cell, which must stay in place; empty if the peer does not support it.
    virtual std::vector<Way> ways(Cell& cell) = 0;
};

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs one iteration and returns the time to report on this rank.
inline double time_once(Peer& peer, const Cell& cell, const Way& way) {
    if (cell.runs_ahead()) peer.barrier();
    const auto begin = std::chrono::steady_clock::now();
    way.run();
    const double seconds = seconds_since(begin);
    if (!cell.is_message()) return seconds;
    if (cell.rank != 0) return 0;
    return cell.is("latency") ? seconds / 2 : seconds / kWindow;
}

inline double median(std::vector<double> samples) {
    if (samples.empty()) return 0;
    std::sort(samples.begin(), samples.end());
    return samples[(samples.size() + 1) / 2 - 1];
}

/// The duration of iterations on the slowest rank in seconds, including untimed work.
struct Pace {
    double typical = 0;
    double total = 0;
};

inline Pace pace_of(Peer& peer, const Cell& cell, const Way& way, std::uint64_t times) {
    std::vector<double> samples;
    double total = 0;
    for (std::uint64_t i = 0; i < times; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        (void)time_once(peer, cell, way);
        samples.push_back(seconds_since(begin));
        total += samples.back();
    }
    const double typical = peer.largest_of_all(median(samples));
    return {typical, peer.largest_of_all(total)};
}

/// The duration of an iteration once they stop getting faster, determined as in `nexar bench`.
inline double warm_up(Peer& peer, const Cell& cell, const Way& way, const Options& options) {
    Pace pace = pace_of(peer, cell, way, std::max<std::uint64_t>(options.warmup, 1));
    double left = options.seconds - pace.total;
    for (bool settled = false; !settled && left > 0;) {
        const double fit = left * 0.2 / std::max(pace.typical, 1e-9);
        const Pace next =
            pace_of(peer, cell, way, static_cast<std::uint64_t>(std::clamp(fit, 1.0, 10'000.0)));
        settled = next.typical > pace.typical * 0.8;
        pace = next;
        left -= next.total;
    }
    return pace.typical;
}

/// The largest median among the ranks, in seconds.
inline double measure(Peer& peer, Cell& cell, const Way& way, const Options& options) {
    cell.fill();
    peer.barrier();  // some algorithms write into the memory of ranks that have not started yet
    const double one = warm_up(peer, cell, way, options);
    const double fit = std::clamp(options.seconds / std::max(one, 1e-9), 1.0, 1e6);
    std::vector<double> samples(static_cast<std::size_t>(fit));
    peer.barrier();
    for (double& sample : samples) sample = time_once(peer, cell, way);
    const double p50 = peer.largest_of_all(median(samples));

    cell.fill();
    peer.barrier();
    (void)time_once(peer, cell, way);
    const double wrong = peer.largest_of_all(static_cast<double>(cell.wrong()));
    if (wrong != 0) {
        throw std::runtime_error(cell.operation + " by " + way.name + ": " + std::to_string(wrong) +
                                 " elements are wrong");
    }
    return p50;
}

/// Prints "op bytes p50_us way" with the fastest way for each cell that the peer supports.
inline void sweep(Peer& peer, const Options& options) {
    for (const std::string& operation : options.operations) {
        const auto sizes = operation == "barrier" ? std::vector<std::uint64_t>{0} : options.sizes;
        for (const std::uint64_t size : sizes) {
            Cell cell = cell_of(operation, size, peer.rank(), peer.world());
            std::string best;
            double seconds = 0;
            for (const Way& way : peer.ways(cell)) {
                const double p50 = measure(peer, cell, way, options);
                if (!best.empty() && p50 >= seconds) continue;
                best = way.name;
                seconds = p50;
            }
            if (best.empty() || peer.rank() != 0) continue;
            std::printf("%s %llu %.2f %s\n", operation.c_str(),
                        static_cast<unsigned long long>(cell.bytes()), seconds * 1e6, best.c_str());
            std::fflush(stdout);
        }
    }
}

}  // namespace peers
