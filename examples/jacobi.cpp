// The temperature of a plate whose edges are held fixed: Jacobi iteration for the Laplace equation.
// The ranks divide the plate into a grid of blocks and exchange the borders of their blocks before
// each step. Rank 0 checks that a serial run takes the same number of steps and gives exactly the
// same numbers. Start it with `nexar run -n 4 -- ./jacobi`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

constexpr std::size_t kRows = 61;  // inside the edges; primes, so that blocks differ in size
constexpr std::size_t kColumns = 47;
constexpr double kTolerance = 1e-3;
constexpr int kMostSteps = 10'000;

/// The fixed edges, and a first guess between them.
double initial(std::size_t row, std::size_t column) {
    if (row == 0) return 1.0 + 0.01 * static_cast<double>(column);
    return column == 0 ? 2.0 - 0.02 * static_cast<double>(row) : 0.0;
}

/// The cells [begin, begin + size) of one dimension.
struct Part {
    std::size_t begin;
    std::size_t size;
};

Part part(std::size_t cells, int index, int parts) {
    const auto i = static_cast<std::size_t>(index), n = static_cast<std::size_t>(parts);
    return {cells * i / n, cells * (i + 1) / n - cells * i / n};
}

/// A rectangle of the plate with a border of one cell that belongs to the neighbours.
struct Block {
    Block(Part down, Part across)
        : rows(down.size), columns(across.size), now((rows + 2) * (columns + 2)) {
        for (std::size_t i = 0; i < now.size(); ++i) {
            now[i] = initial(down.begin + i / (columns + 2), across.begin + i % (columns + 2));
        }
        next = now;
    }

    std::size_t at(std::size_t i, std::size_t j) const { return i * (columns + 2) + j; }
    std::span<double> row(std::size_t i) { return {&now[at(i, 1)], columns}; }
    std::vector<nexar::Region> column(std::size_t j) {
        return nexar::strided(&now[at(1, j)], rows, 1, columns + 2);
    }

    /// Makes every cell the mean of its neighbours; returns the largest change.
    double step() {
        double change = 0;
        for (std::size_t i = 1; i <= rows; ++i) {
            for (std::size_t j = 1; j <= columns; ++j) {
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
        for (std::size_t i = 1; i <= down.size; ++i) {
            const double* first = &now[at(down.begin + i, across.begin + 1)];
            all.insert(all.end(), first, first + across.size);
        }
        return all;
    }

    std::size_t rows, columns;
    std::vector<double> now, next{};
};

/// The ranks as a grid, as square as their number allows.
struct Grid {
    explicit Grid(int size) {
        for (int i = 1; i * i <= size; ++i) {
            if (size % i == 0) across = i;
        }
        down = size / across;
    }
    int rank(int row, int column) const {
        const bool exists = row >= 0 && row < down && column >= 0 && column < across;
        return exists ? row * across + column : nexar::no_rank;
    }
    Part rows(int rank) const { return part(kRows, rank / across, down); }
    Part columns(int rank) const { return part(kColumns, rank % across, across); }

    int down = 1, across = 1;
};

void exchange_borders(const nexar::Communicator& world, const Grid& grid, Block& block) {
    const int row = world.rank() / grid.across, column = world.rank() % grid.across;
    const int up = grid.rank(row - 1, column), down = grid.rank(row + 1, column);
    const int left = grid.rank(row, column - 1), right = grid.rank(row, column + 1);
    nexar::wait_all(world.send(block.row(1), up), world.send(block.row(block.rows), down),
                    world.recv(block.row(0), up), world.recv(block.row(block.rows + 1), down),
                    world.send_iov(block.column(1), left),
                    world.send_iov(block.column(block.columns), right),
                    world.recv_iov(block.column(0), left),
                    world.recv_iov(block.column(block.columns + 1), right));
}

/// Throws unless a serial run gives the same blocks after the same number of steps.
void check(const nexar::Gathered<double>& blocks, const Grid& grid, int steps) {
    Block plate({0, kRows}, {0, kColumns});
    int serial_steps = 1;
    while (plate.step() > kTolerance) ++serial_steps;
    if (steps != serial_steps) throw std::runtime_error("wrong number of steps");
    for (int rank = 0; rank < grid.down * grid.across; ++rank) {
        if (!std::ranges::equal(blocks.chunk(rank),
                                plate.cells(grid.rows(rank), grid.columns(rank)))) {
            throw std::runtime_error("wrong temperatures");
        }
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    const Grid grid(world.size());
    if (static_cast<std::size_t>(grid.down) > kRows) throw std::runtime_error("too many ranks");
    Block mine(grid.rows(world.rank()), grid.columns(world.rank()));

    int steps = 0;
    double change = 1;
    for (; change > kTolerance && steps < kMostSteps; ++steps) {
        exchange_borders(world, grid, mine);
        change = world.all_reduce(mine.step(), nexar::max).wait();
    }

    const auto cells = mine.cells({0, mine.rows}, {0, mine.columns});
    const nexar::Gathered<double> blocks = world.gather_v(cells, 0).wait();
    if (world.rank() != 0) return 0;
    check(blocks, grid, steps);
    std::printf("%d x %d ranks agree with a serial run after %d steps\n", grid.down, grid.across,
                steps);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
