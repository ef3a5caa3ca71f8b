// MPI, measured like `nexar bench`. Compiled once with each implementation's mpicxx, and started by
// its mpirun.

// Everybody uses the C interface; these keep Open MPI and MPICH from including the C++ one.
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <mpi.h>

#include <array>

#include "peer.hpp"

namespace {

using peers::Cell;
using peers::Way;

constexpr int kTag = 1;

void ping_pong(Cell& cell) {
    const int count = static_cast<int>(cell.count);
    const int other = cell.rank == 0 ? 1 : 0;
    if (cell.rank > 1) return;
    if (cell.rank == 0) MPI_Send(cell.input.data(), count, MPI_FLOAT, other, kTag, MPI_COMM_WORLD);
    MPI_Recv(cell.output.data(), count, MPI_FLOAT, other, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (cell.rank == 1) MPI_Send(cell.input.data(), count, MPI_FLOAT, other, kTag, MPI_COMM_WORLD);
}

/// Many messages in one direction, all into the same memory, and a reply.
void stream(Cell& cell) {
    const int count = static_cast<int>(cell.count);
    std::array<MPI_Request, peers::kWindow> requests{};
    if (cell.rank > 1) return;
    int answer = 0;
    if (cell.rank == 0) {
        for (MPI_Request& request : requests) {
            MPI_Isend(cell.input.data(), count, MPI_FLOAT, 1, kTag, MPI_COMM_WORLD, &request);
        }
        MPI_Waitall(peers::kWindow, requests.data(), MPI_STATUSES_IGNORE);
        MPI_Recv(&answer, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (MPI_Request& request : requests) {
        MPI_Irecv(cell.output.data(), count, MPI_FLOAT, 0, kTag, MPI_COMM_WORLD, &request);
    }
    MPI_Waitall(peers::kWindow, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Send(&answer, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD);
}

std::function<void()> folding(Cell& cell) {
    float* const in = cell.input.data();
    float* const out = cell.output.data();
    const int count = static_cast<int>(cell.count);
    const int chunk = static_cast<int>(cell.chunk);
    const MPI_Comm world = MPI_COMM_WORLD;
    const std::map<std::string, std::function<void()>> all{
        {"all_reduce", [=] { MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, world); }},
        {"reduce", [=] { MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, world); }},
        {"reduce_scatter",
         [=] { MPI_Reduce_scatter_block(in, out, chunk, MPI_FLOAT, MPI_SUM, world); }},
        {"scan", [=] { MPI_Scan(in, out, count, MPI_FLOAT, MPI_SUM, world); }},
        {"exclusive_scan", [=] { MPI_Exscan(in, out, count, MPI_FLOAT, MPI_SUM, world); }}};
    const auto found = all.find(cell.operation);
    return found == all.end() ? nullptr : found->second;
}

std::function<void()> moving(Cell& cell) {
    float* const in = cell.input.data();
    float* const out = cell.output.data();
    const int count = static_cast<int>(cell.count);
    const int chunk = static_cast<int>(cell.chunk);
    const MPI_Comm world = MPI_COMM_WORLD;
    const std::map<std::string, std::function<void()>> all{
        {"broadcast", [=] { MPI_Bcast(out, count, MPI_FLOAT, 0, world); }},
        {"all_gather", [=] { MPI_Allgather(in, chunk, MPI_FLOAT, out, chunk, MPI_FLOAT, world); }},
        {"gather", [=] { MPI_Gather(in, chunk, MPI_FLOAT, out, chunk, MPI_FLOAT, 0, world); }},
        {"scatter", [=] { MPI_Scatter(in, chunk, MPI_FLOAT, out, chunk, MPI_FLOAT, 0, world); }},
        {"all_to_all", [=] { MPI_Alltoall(in, chunk, MPI_FLOAT, out, chunk, MPI_FLOAT, world); }},
        {"barrier", [=] { MPI_Barrier(world); }},
        {"latency", [&cell] { ping_pong(cell); }},
        {"bandwidth", [&cell] { stream(cell); }}};
    const auto found = all.find(cell.operation);
    return found == all.end() ? nullptr : found->second;
}

class Mpi final : public peers::Peer {
public:
    int rank() const override {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return rank;
    }
    int world() const override {
        int size = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        return size;
    }
    void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
    double largest_of_all(double value) override {
        double largest = 0;
        MPI_Allreduce(&value, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return largest;
    }
    std::vector<Way> ways(Cell& cell) override {
        if (auto run = folding(cell)) return {{"mpi", run}};
        if (auto run = moving(cell)) return {{"mpi", run}};
        return {};
    }
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    try {
        Mpi peer;
        peers::sweep(peer, peers::parse(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "mpi_peer: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
}
