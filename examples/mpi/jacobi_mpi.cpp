// The same program as ../jacobi.cpp, written with MPI for comparison. Start it with
// `mpirun -n 4 ./jacobi_mpi`.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr int kRows = 61;  // inside the edges; primes, so that blocks differ in size
constexpr int kColumns = 47;
constexpr double kTolerance = 1e-3;
constexpr int kMostSteps = 10'000;

void fail(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/// The fixed edges, and a first guess between them.
double initial(int row, int column) {
    if (row == 0) return 1.0 + 0.01 * column;
    return column == 0 ? 2.0 - 0.02 * row : 0.0;
}

/// The cells [begin, begin + size) of one dimension.
struct Part {
    int begin;
    int size;
};

Part part(int cells, int index, int parts) {
    return {cells * index / parts, cells * (index + 1) / parts - cells * index / parts};
}

/// A rectangle of the plate with a border of one cell that belongs to the neighbours.
struct Block {
    Block(Part down, Part across)
        : rows(down.size), columns(across.size), now((rows + 2) * (columns + 2)) {
        for (int i = 0; i < (rows + 2) * (columns + 2); ++i) {
            now[i] = initial(down.begin + i / (columns + 2), across.begin + i % (columns + 2));
        }
        next = now;
    }

    int at(int i, int j) const { return i * (columns + 2) + j; }
    double* cell(int i, int j) { return &now[at(i, j)]; }

    /// Makes every cell the mean of its neighbours; returns the largest change.
    double step() {
        double change = 0;
        for (int i = 1; i <= rows; ++i) {
            for (int j = 1; j <= columns; ++j) {
                const double vertical = now[at(i - 1, j)] + now[at(i + 1, j)];
                const double mean = (vertical + now[at(i, j - 1)] + now[at(i, j + 1)]) / 4;
                change = std::max(change, std::abs(mean - now[at(i, j)]));
                next[at(i, j)] = mean;
            }
        }
        now.swap(next);
        return change;
    }

    /// The cells of a part of this block, row by row.
    std::vector<double> cells(Part down, Part across) const {
        std::vector<double> all;
        for (int i = 1; i <= down.size; ++i) {
            const double* first = &now[at(down.begin + i, across.begin + 1)];
            all.insert(all.end(), first, first + across.size);
        }
        return all;
    }

    int rows, columns;
    std::vector<double> now, next;
};

/// The ranks as a grid.
struct Grid {
    explicit Grid(int size) { MPI_Dims_create(size, 2, dimensions); }
    Part rows(int rank) const { return part(kRows, rank / dimensions[1], dimensions[0]); }
    Part columns(int rank) const { return part(kColumns, rank % dimensions[1], dimensions[1]); }

    int dimensions[2] = {0, 0};
};

void exchange_borders(MPI_Comm grid, MPI_Datatype column, Block& block) {
    const int rows = block.rows, columns = block.columns;
    int up = 0, down = 0, left = 0, right = 0;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Sendrecv(block.cell(1, 1), columns, MPI_DOUBLE, up, 0, block.cell(rows + 1, 1), columns,
                 MPI_DOUBLE, down, 0, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(block.cell(rows, 1), columns, MPI_DOUBLE, down, 0, block.cell(0, 1), columns,
                 MPI_DOUBLE, up, 0, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(block.cell(1, 1), 1, column, left, 0, block.cell(1, columns + 1), 1, column, right,
                 0, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(block.cell(1, columns), 1, column, right, 0, block.cell(1, 0), 1, column, left, 0,
                 grid, MPI_STATUS_IGNORE);
}

/// Gathers the cells of all ranks, in rank order, at rank 0.
std::vector<double> gather(const std::vector<double>& cells, MPI_Comm comm, int size) {
    const int count = static_cast<int>(cells.size());
    std::vector<int> counts(size), displacements(size);
    MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm);
    for (int i = 1; i < size; ++i) displacements[i] = displacements[i - 1] + counts[i - 1];
    std::vector<double> all(displacements.back() + counts.back());
    MPI_Gatherv(cells.data(), count, MPI_DOUBLE, all.data(), counts.data(), displacements.data(),
                MPI_DOUBLE, 0, comm);
    return all;
}

/// Fails unless a serial run gives the same blocks after the same number of steps.
void check(const std::vector<double>& blocks, const Grid& grid, int size, int steps) {
    Block plate({0, kRows}, {0, kColumns});
    int serial_steps = 1;
    while (plate.step() > kTolerance) ++serial_steps;
    if (steps != serial_steps) fail("wrong number of steps");
    auto block = blocks.begin();
    for (int rank = 0; rank < size; ++rank) {
        const auto expected = plate.cells(grid.rows(rank), grid.columns(rank));
        if (!std::equal(expected.begin(), expected.end(), block)) fail("wrong temperatures");
        block += static_cast<std::ptrdiff_t>(expected.size());
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Grid grid(size);
    if (grid.dimensions[0] > kRows) fail("too many ranks");
    MPI_Comm comm = MPI_COMM_NULL;
    const int periodic[2] = {0, 0};
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid.dimensions, periodic, 0, &comm);
    Block mine(grid.rows(rank), grid.columns(rank));
    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Type_vector(mine.rows, 1, mine.columns + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);

    int steps = 0;
    double change = 1;
    for (; change > kTolerance && steps < kMostSteps; ++steps) {
        exchange_borders(comm, column, mine);
        change = mine.step();
        MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, comm);
    }

    const auto cells = mine.cells({0, mine.rows}, {0, mine.columns});
    const std::vector<double> blocks = gather(cells, comm, size);
    if (rank == 0) {
        check(blocks, grid, size, steps);
        std::printf("%d x %d ranks agree with a serial run after %d steps\n", grid.dimensions[0],
                    grid.dimensions[1], steps);
    }
    MPI_Type_free(&column);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}
