// Gloo over TCP on loopback, measured like `nexar bench`. For each cell, the fastest of Gloo's
// algorithms counts. Starts its ranks itself.

#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "peer.hpp"

namespace {

using peers::Cell;
using peers::Way;
using Context = std::shared_ptr<gloo::rendezvous::Context>;

constexpr int kRoot = 0;

/// Every operation has its own tag, the same on all ranks: a rank may be in the next operation
/// while others are still in this one, and with the same tag Gloo would mix up their messages.
template <class Options>
Options tagged(const Context& context) {
    static std::uint32_t tag = 0;
    Options options(context);
    options.setTag(++tag);
    return options;
}

std::function<void()> all_reduce(const Context& context, Cell& cell,
                                 gloo::AllreduceOptions::Algorithm algorithm) {
    return [context, &cell, algorithm] {
        auto options = tagged<gloo::AllreduceOptions>(context);
        options.setAlgorithm(algorithm);
        options.setInput(cell.input.data(), cell.count);
        options.setOutput(cell.output.data(), cell.count);
        options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) {
            gloo::sum<float>(out, a, b, n);
        });
        gloo::allreduce(options);
    };
}

/// The older interface works in place and is prepared once. It reads and writes the output, so the
/// numbers grow with each iteration; only the last iteration, on a freshly filled cell, is checked.
template <class Algorithm>
std::function<void()> in_place(const Context& context, Cell& cell) {
    auto algorithm = std::make_shared<Algorithm>(context, std::vector<float*>{cell.output.data()},
                                                 static_cast<int>(cell.count));
    return [algorithm, &cell] {
        // The value that Cell::fill() leaves: copy the input before the first iteration.
        if (cell.output[0] == -1.0F) cell.output = cell.input;
        algorithm->run();
    };
}

std::vector<Way> all_reduces(const Context& context, const Context& older, Cell& cell) {
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    return {{"ring", all_reduce(context, cell, Algorithm::RING)},
            {"bcube", all_reduce(context, cell, Algorithm::BCUBE)},
            {"ring_chunked", in_place<gloo::AllreduceRingChunked<float>>(older, cell)},
            {"halving_doubling", in_place<gloo::AllreduceHalvingDoubling<float>>(older, cell)}};
}

/// The ways of the older interface for operations that do not reduce; prepared once as well.
std::vector<Way> older_ways(const Context& context, Cell& cell) {
    std::vector<Way> ways;
    const auto add = [&](const char* name, std::shared_ptr<gloo::Algorithm> algorithm) {
        ways.push_back({name, [algorithm = std::move(algorithm)] { algorithm->run(); }});
    };
    const auto chunk = static_cast<int>(cell.chunk);
    if (cell.is("barrier")) {
        add("all_to_all", std::make_shared<gloo::BarrierAllToAll>(context));
        add("all_to_one", std::make_shared<gloo::BarrierAllToOne>(context));
    } else if (cell.is("broadcast")) {
        add("one_to_all", std::make_shared<gloo::BroadcastOneToAll<float>>(
                              context, std::vector<float*>{cell.output.data()}, cell.count, kRoot));
    } else if (cell.is("all_gather")) {
        add("ring",
            std::make_shared<gloo::AllgatherRing<float>>(
                context, std::vector<const float*>{cell.input.data()}, cell.output.data(), chunk));
    }
    return ways;
}

void reduce(const Context& context, Cell& cell) {
    auto options = tagged<gloo::ReduceOptions>(context);
    options.setRoot(kRoot);
    options.setInput(cell.input.data(), cell.count);
    options.setOutput(cell.output.data(), cell.count);
    options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) {
        gloo::sum<float>(out, a, b, n);
    });
    gloo::reduce(options);
}

void broadcast(const Context& context, Cell& cell) {
    auto options = tagged<gloo::BroadcastOptions>(context);
    options.setRoot(kRoot);
    options.setOutput(cell.output.data(), cell.count);
    gloo::broadcast(options);
}

void all_gather(const Context& context, Cell& cell) {
    auto options = tagged<gloo::AllgatherOptions>(context);
    options.setInput(cell.input.data(), cell.chunk);
    options.setOutput(cell.output.data(), cell.count);
    gloo::allgather(options);
}

void gather(const Context& context, Cell& cell) {
    auto options = tagged<gloo::GatherOptions>(context);
    options.setRoot(kRoot);
    options.setInput(cell.input.data(), cell.chunk);
    if (cell.rank == kRoot) options.setOutput(cell.output.data(), cell.count);
    gloo::gather(options);
}

void scatter(const Context& context, Cell& cell) {
    auto options = tagged<gloo::ScatterOptions>(context);
    options.setRoot(kRoot);
    if (cell.rank == kRoot) {
        std::vector<float*> parts;
        for (int i = 0; i < cell.world; ++i) {
            parts.push_back(cell.input.data() + static_cast<std::uint64_t>(i) * cell.chunk);
        }
        options.setInputs(parts, cell.chunk);
    }
    options.setOutput(cell.output.data(), cell.chunk);
    gloo::scatter(options);
}

void all_to_all(const Context& context, Cell& cell) {
    auto options = tagged<gloo::AlltoallOptions>(context);
    options.setInput(cell.input.data(), cell.count);
    options.setOutput(cell.output.data(), cell.count);
    gloo::alltoall(options);
}

/// Memory to send from or receive into, one message at a time.
using Bound = std::unique_ptr<gloo::transport::UnboundBuffer>;

std::function<void()> ping_pong(const Context& context, Cell& cell) {
    std::shared_ptr<gloo::transport::UnboundBuffer> out =
        context->createUnboundBuffer(cell.input.data(), cell.bytes());
    std::shared_ptr<gloo::transport::UnboundBuffer> in =
        context->createUnboundBuffer(cell.output.data(), cell.bytes());
    const int rank = cell.rank;
    return [=] {
        const int other = rank == 0 ? 1 : 0;
        if (rank > 1) return;
        if (rank == 1) {
            in->recv(other, 0);
            in->waitRecv();
        }
        out->send(other, 0);
        out->waitSend();
        if (rank == 0) {
            in->recv(other, 0);
            in->waitRecv();
        }
    };
}

std::function<void()> stream(const Context& context, Cell& cell) {
    auto window = std::make_shared<std::vector<Bound>>();
    std::vector<float>& memory = cell.rank == 0 ? cell.input : cell.output;
    for (int i = 0; i < peers::kWindow; ++i) {
        window->push_back(context->createUnboundBuffer(memory.data(), cell.bytes()));
    }
    auto word = std::make_shared<int>(0);
    std::shared_ptr<gloo::transport::UnboundBuffer> answer =
        context->createUnboundBuffer(word.get(), sizeof(int));
    const int rank = cell.rank;
    return [=] {
        if (rank == 0) {
            for (Bound& one : *window) one->send(1, 0);
            for (Bound& one : *window) one->waitSend();
            answer->recv(1, 1);
            answer->waitRecv();
        } else if (rank == 1) {
            for (Bound& one : *window) one->recv(0, 0);
            for (Bound& one : *window) one->waitRecv();
            answer->send(0, 1);
            answer->waitSend();
        }
        (void)*word;  // keeps its memory alive
    };
}

class Gloo final : public peers::Peer {
public:
    /// Two sets of connections: on a shared set, operations of the older and the newer interface
    /// deadlock.
    Gloo(Context context, Context older) : context_(std::move(context)), older_(std::move(older)) {}

    int rank() const override { return context_->rank; }
    int world() const override { return context_->size; }
    void barrier() override {
        auto options = tagged<gloo::BarrierOptions>(context_);
        gloo::barrier(options);
    }
    double largest_of_all(double value) override {
        auto options = tagged<gloo::AllreduceOptions>(context_);
        options.setOutput(&value, 1);
        options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) {
            gloo::max<double>(out, a, b, n);
        });
        gloo::allreduce(options);
        return value;
    }

    /// Without reduce_scatter: Gloo writes a rank's result over memory that it may still be
    /// sending, and another rank then gets wrong data.
    std::vector<Way> ways(Cell& cell) override {
        if (cell.is("all_reduce")) return all_reduces(context_, older_, cell);
        if (cell.is("latency")) return {{"gloo", ping_pong(context_, cell)}};
        if (cell.is("bandwidth")) return {{"gloo", stream(context_, cell)}};
        std::vector<Way> ways = older_ways(older_, cell);
        if (cell.is("barrier")) {
            ways.push_back({"gloo", [this] { barrier(); }});
            return ways;
        }
        using Function = void (*)(const Context&, Cell&);
        const std::map<std::string, Function> all{
            {"reduce", reduce}, {"broadcast", broadcast}, {"all_gather", all_gather},
            {"gather", gather}, {"scatter", scatter},     {"all_to_all", all_to_all}};
        const auto found = all.find(cell.operation);
        if (found == all.end()) return {};
        ways.push_back({"gloo", [this, &cell, run = found->second] { run(context_, cell); }});
        return ways;
    }

private:
    Context context_;
    Context older_;
};

/// A context connected to all ranks, which find each other through a directory.
Context connected(int rank, int world, const std::string& directory) {
    std::filesystem::create_directories(directory);
    gloo::rendezvous::FileStore store(directory);
    auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, world);
    context->connectFullMesh(store, device);
    return context;
}

int take_part(int rank, const peers::Options& options, const std::string& directory) {
    try {
        Gloo peer(connected(rank, options.ranks, directory + "/newer"),
                  connected(rank, options.ranks, directory + "/older"));
        peers::sweep(peer, options);
        peer.barrier();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gloo_peer: rank %d: %s\n", rank, error.what());
        return 1;
    }
}

/// Waits for all ranks. If one fails, ends the others, which would wait for it.
int wait_for(const std::vector<pid_t>& ranks) {
    int code = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        int status = 0;
        if (::wait(&status) < 0 || status == 0 || code != 0) continue;
        code = 1;
        for (const pid_t rank : ranks) ::kill(rank, SIGTERM);
    }
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    const peers::Options options = peers::parse(argc, argv);
    std::string directory = (std::filesystem::temp_directory_path() / "gloo-XXXXXX").string();
    if (::mkdtemp(directory.data()) == nullptr) return 1;
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < options.ranks; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            std::exit(take_part(rank, options, directory));
        }
        ranks.push_back(child);
    }
    const int code = wait_for(ranks);
    std::filesystem::remove_all(directory);
    return code;
}
