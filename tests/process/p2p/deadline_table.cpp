#include "process/p2p/deadline_table.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace nexar::testing {

namespace {

template <class T>
class RowOf final : public Row {
public:
    explicit RowOf(Work<T> work) : work_(std::move(work)) {}

    detail::Task* task() const override { return work_.task(); }
    void cancel() override { work_.cancel(); }
    std::optional<Error> outcome() override {
        const auto result = work_.result();
        if (result) return std::nullopt;
        return result.error();
    }

private:
    Work<T> work_;
};

using Numbers = std::span<std::uint8_t>;
using Memory = std::vector<std::unique_ptr<UnmappableMemory>>;

/// Starts operations and records a row of the table for each.
class Starter {
public:
    Starter(FaultyWorld& world, std::size_t size, SteadyPoint due)
        : node_(&world.node()),
          world_(world.world()),
          size_(size),
          chunk_(std::max<std::size_t>(size / 3, 1)),
          due_(due) {}

    void messages(int peer);
    void calls(int peer);
    void collectives();
    template <class T>
    void cancelled(std::string name, Work<T> work) {
        add(std::move(name), std::move(work), true);
    }

    std::vector<std::unique_ptr<Row>> rows{};

private:
    static constexpr int kMe = FaultyWorld::kMe;
    // A timeout that expires before the operation has started would test nothing.
    static constexpr std::chrono::milliseconds kLeastTime{20};

    /// Allocates memory for the next row.
    Numbers make(std::size_t bytes) {
        memory_.push_back(std::make_unique<UnmappableMemory>(bytes));
        return {reinterpret_cast<std::uint8_t*>(memory_.back()->bytes().data()), bytes};
    }
    Numbers all() { return make(size_); }
    Numbers whole() { return make(3 * chunk_); }
    Numbers part() { return make(chunk_); }

    /// The time left until the deadline.
    std::chrono::nanoseconds left() {
        const auto now = std::chrono::steady_clock::now();
        row_due_ = std::max(due_, now + kLeastTime);
        return row_due_ - now;
    }
    CollectiveOptions in_time() { return {.timeout = left()}; }

    template <class T>
    void add(std::string name, Work<T> work, bool cancels) {
        auto row = std::make_unique<RowOf<T>>(std::move(work));
        row->name = std::move(name);
        row->cancels = cancels;
        row->due = cancels ? due_ : row_due_;
        row->memory = std::exchange(memory_, {});
        rows.push_back(std::move(row));
    }
    void timed(std::string name, Work<> work) { add(std::move(name), std::move(work), false); }

    Node* node_;
    Communicator world_;
    std::size_t size_;
    std::size_t chunk_;
    SteadyPoint due_;
    SteadyPoint row_due_{};
    Memory memory_{};
};

void Starter::messages(int peer) {
    cancelled("send", world_.send(all(), peer, 1));
    cancelled("synchronous send", world_.send(all(), peer, 2, {.synchronous = true}));
    const Numbers pieces = all();
    const std::array regions{ConstRegion(std::as_bytes(pieces.first(pieces.size() / 3))),
                             ConstRegion(std::as_bytes(pieces.subspan(pieces.size() / 3)))};
    cancelled("send of regions", world_.send_iov(regions, peer, 3));
    cancelled("receive", world_.recv(all(), peer, 4));
    cancelled("receive from any", world_.recv(all(), any_source, 4));
    const Numbers outgoing = all();
    cancelled("send and receive", world_.send_recv(outgoing, peer, all(), peer, 5));
    cancelled("receive of an arriving message",
              world_.recv(all(), peer, FaultyWorld::arriving(size_, false)));
    if (auto message = world_.try_matched_probe(peer, FaultyWorld::arriving(size_, true))) {
        cancelled("receive of a probed message", std::move(*message).recv(all()));
    }
    cancelled("probe", world_.probe(peer, 6));
    cancelled("matched probe", world_.matched_probe(peer, 6));
}

void Starter::calls(int peer) {
    const std::span<const std::uint8_t> argument = all();
    auto call = node_->call<void>(peer, "absorb", argument, {.timeout = left()});
    timed("call", std::move(call));
    const std::span<const std::uint8_t> other = all();
    cancelled("cancelled call",
              node_->call<void>(peer, "absorb", other, {.timeout = CallOptions::kNoTimeout}));
}

void Starter::collectives() {
    timed("barrier", world_.barrier(in_time()));
    timed("all_reduce in place", world_.all_reduce(all(), sum, in_time()));
    const auto two = [&](std::size_t in, std::size_t out) {
        return std::pair(make(in), make(out));
    };
    auto [reduced, sums] = two(size_, size_);
    timed("all_reduce", world_.all_reduce(reduced, sums, sum, in_time()));
    for (const int root : {0, kMe}) {
        const std::string of = root == kMe ? ", root" : "";
        auto [in, out] = two(size_, size_);
        timed("reduce" + of, world_.reduce(in, out, sum, root, in_time()));
        timed("broadcast" + of, world_.broadcast(all(), root, in_time()));
        auto [own, gathered] = two(chunk_, 3 * chunk_);
        timed("gather" + of, world_.gather(own, gathered, root, in_time()));
        auto [scattered, mine] = two(3 * chunk_, chunk_);
        timed("scatter" + of, world_.scatter(scattered, mine, root, in_time()));
    }
    auto [scanned, scan] = two(size_, size_);
    timed("scan", world_.scan(scanned, scan, sum, in_time()));
    auto [excluded, exclusive] = two(size_, size_);
    timed("exclusive_scan", world_.exclusive_scan(excluded, exclusive, sum, in_time()));
    auto [vector, chunk] = two(3 * chunk_, chunk_);
    timed("reduce_scatter", world_.reduce_scatter(vector, chunk, sum, in_time()));
    auto [one, everything] = two(chunk_, 3 * chunk_);
    timed("all_gather", world_.all_gather(one, everything, in_time()));
    auto [out, in] = two(3 * chunk_, 3 * chunk_);
    timed("all_to_all", world_.all_to_all(out, in, in_time()));
    cancelled("cancelled all_reduce",
              world_.all_reduce(all(), sum, {.timeout = std::chrono::minutes(5)}));
}

/// Records the rows that have completed, unmaps their memory, and keeps the others in the list.
void note_ended(std::vector<Row*>& waiting) {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(waiting, [&](Row* row) {
        if (!detail::done(*row->task())) return false;
        row->ended = now;
        for (const auto& memory : row->memory) memory->unmap();
        return true;
    });
}

void wait_until(std::vector<Row*>& waiting, SteadyPoint until) {
    while (!waiting.empty()) {
        std::vector<detail::Task*> tasks;
        for (const Row* row : waiting) tasks.push_back(row->task());
        const bool over = detail::wait_any(tasks, &until) == tasks.size();
        note_ended(waiting);
        if (over) return;
    }
}

}  // namespace

std::vector<std::unique_ptr<Row>> start_rows(FaultyWorld& world, std::size_t size,
                                             SteadyPoint due) {
    Starter starter(world, size, due);
    for (int peer = 0; peer < FaultyWorld::kMe; ++peer) {
        starter.messages(peer);
        starter.calls(peer);
    }
    starter.collectives();
    if (size == FaultyWorld::sizes().back()) {
        starter.cancelled("call whose answer is arriving", std::move(world.answering()));
    }
    return std::move(starter.rows);
}

bool run_rows(std::vector<std::unique_ptr<Row>>& rows, SteadyPoint due,
              std::chrono::nanoseconds at_most) {
    std::vector<Row*> waiting;
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& row : rows) {
        row->due = std::max(row->due, begin);  // completion is first checked now
        waiting.push_back(row.get());
    }
    wait_until(waiting, due);
    for (Row* row : waiting) {
        if (!row->cancels) continue;
        row->due = std::chrono::steady_clock::now();
        row->cancel();
    }
    wait_until(waiting, std::chrono::steady_clock::now() + at_most);
    return waiting.empty();
}

}  // namespace nexar::testing
