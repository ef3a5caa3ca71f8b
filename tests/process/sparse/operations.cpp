#include "process/sparse/operations.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/collective_data.hpp"
#include "unit/runtime/collectives/mixed_collective.hpp"

namespace nexar::testing {

namespace {

using Number = std::int64_t;
using Numbers = std::vector<Number>;

template <class T>
T ended(Work<T> work) {
    return finish(work, soon());
}

void require(bool right, const Communicator& world, const std::string& what) {
    if (right) return;
    throw std::runtime_error(what + " is wrong at rank " + std::to_string(world.rank()) + " of " +
                             std::to_string(world.size()));
}

/// The tags of the messages from one rank to another, and the elements of each: copied, sent at
/// once, and sent when a receive has matched.
struct Letter {
    std::uint64_t tag;
    std::size_t elements;
};
constexpr Letter kLetters[] = {{1, 0},
                               {std::uint64_t{1} << 33U, 9},
                               {7, 3000},
                               {std::numeric_limits<std::uint64_t>::max(), 12'000}};

/// The operations of one communicator.
class Operations {
public:
    Operations(Communicator world, std::uint64_t seed) : world_(std::move(world)), seed_(seed) {
        for (int rank = 0; rank < size(); ++rank) own_counts_.push_back(count(rank, rank));
    }

    void run_collectives(std::size_t most) {
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            for (const std::size_t elements : {std::size_t{1}, most / 7, most}) {
                MixedCollective collective(static_cast<Kind>(kind), seed_ + kind,
                                           static_cast<std::size_t>(size()), elements);
                ended(collective.start(world_));
                const auto verdict = collective.right(static_cast<std::size_t>(rank()));
                if (!verdict) throw std::runtime_error(verdict.message());
            }
        }
    }

    void run_counted() {
        all_gather();
        gather_and_scatter();
        all_to_all();
        reduce_scatter();
    }

    void run_messages() {
        std::vector<std::pair<Numbers, Work<>>> sends;
        sends.reserve(static_cast<std::size_t>(size()) * std::size(kLetters));
        for (int to = 0; to < size(); ++to) {
            for (const Letter& letter : kLetters) {
                auto& [content, work] = sends.emplace_back(text(rank(), to, letter), Work<>());
                work = world_.send(content, to, letter.tag);
            }
        }
        // In another order than they were sent.
        for (std::size_t i = std::size(kLetters); i-- > 0;) {
            for (int from = 0; from < size(); ++from) expect_letter(from, kLetters[i]);
        }
        for (auto& [content, work] : sends) finish(work, soon());
    }

    /// Messages that any rank may have sent: one from each.
    void run_any_source() {
        std::vector<Work<>> sends;
        for (int to = 0; to < size(); ++to) sends.push_back(world_.send(rank() * 100 + to, to, 3));
        std::set<int> seen;
        for (int i = 0; i < size(); ++i) {
            int value = -1;
            const Status status = ended(world_.recv(std::span(&value, 1), any_source, 3));
            require(value == status.source * 100 + rank(), world_, "a message from any source");
            seen.insert(status.source);
        }
        require(seen.size() == static_cast<std::size_t>(size()), world_, "the set of sources");
        for (Work<>& send : sends) finish(send, soon());
    }

    void run_calls(Node& node) {
        const auto served = node.serve("turn", [](std::span<const Number> numbers) {
            return Numbers(numbers.rbegin(), numbers.rend());
        });
        ended(world_.barrier());
        std::vector<std::pair<Numbers, Work<Numbers>>> calls;
        calls.reserve(static_cast<std::size_t>(size()));
        for (int to = 0; to < size(); ++to) {
            auto& [argument, work] = calls.emplace_back(chunk(rank(), to, 20), Work<Numbers>());
            work = world_.call<Numbers>(to, "turn", argument);
        }
        for (auto& [argument, work] : calls) {
            const Numbers answer = finish(work, soon());
            std::ranges::reverse(argument);
            require(answer == argument, world_, "the answer to a call");
        }
        ended(world_.barrier());  // others may still call
    }

private:
    int rank() const { return world_.rank(); }
    int size() const { return world_.size(); }

    /// Elements that `from` sends to `to`; none for some pairs.
    static std::size_t count(int from, int to) {
        return static_cast<std::size_t>((from * 7 + to * 3) % 5 * 61);
    }
    Numbers chunk(int from, int to, std::size_t times = 1) const {
        const auto pair = static_cast<std::size_t>(from * 1000 + to);
        return elements<Number>(Values::distinct, seed_, pair, times * count(from, to));
    }
    /// The elements for all ranks, one after the other.
    Numbers chunks(int from) const {
        Numbers all;
        for (int to = 0; to < size(); ++to) append(all, chunk(from, to));
        return all;
    }
    Numbers text(int from, int to, const Letter& letter) const {
        const auto pair = static_cast<std::size_t>(from * 1000 + to);
        return elements<Number>(Values::distinct, seed_ + letter.tag, pair, letter.elements);
    }
    static void append(Numbers& all, const Numbers& more) {
        all.insert(all.end(), more.begin(), more.end());
    }
    std::vector<std::size_t> counts_of(int from) const {
        std::vector<std::size_t> counts;
        for (int to = 0; to < size(); ++to) counts.push_back(count(from, to));
        return counts;
    }
    /// What each rank sends to itself, by rank.
    Numbers own_chunks() const {
        Numbers all;
        for (int from = 0; from < size(); ++from) append(all, chunk(from, from));
        return all;
    }

    void all_gather() {
        const Numbers in = chunk(rank(), rank());
        const auto gathered = ended(world_.all_gather_v(in));
        require(gathered.elements == own_chunks() && gathered.counts == own_counts_, world_,
                "all_gather_v");
        Numbers out(own_chunks().size());
        ended(world_.all_gather_v(in, out, own_counts_));
        require(out == own_chunks(), world_, "all_gather_v with counts");
    }

    void gather_and_scatter() {
        for (const int root : {0, size() / 2, size() - 1}) {
            const Numbers in = chunk(rank(), rank());
            const auto gathered = ended(world_.gather_v(in, root));
            if (rank() == root) require(gathered.elements == own_chunks(), world_, "gather_v");
            const Numbers all = chunks(root);
            const auto part =
                ended(world_.scatter_v(rank() == root ? std::span(all) : std::span<const Number>(),
                                       counts_of(root), root));
            require(part == chunk(root, rank()), world_, "scatter_v");
        }
    }

    void all_to_all() {
        const Numbers in = chunks(rank());
        const auto exchanged = ended(world_.all_to_all_v(in, counts_of(rank())));
        Numbers wanted;
        for (int from = 0; from < size(); ++from) append(wanted, chunk(from, rank()));
        require(exchanged.elements == wanted, world_, "all_to_all_v");
    }

    void reduce_scatter() {
        const std::size_t total = own_chunks().size();
        const PerRank<Number> all =
            inputs<Number>(Values::distinct, seed_, static_cast<std::size_t>(size()), total);
        const auto me = static_cast<std::size_t>(rank());
        Numbers out(own_counts_[me]);
        ended(world_.reduce_scatter_v(all[me], out, own_counts_, sum));
        const auto before =
            std::accumulate(own_counts_.begin(), own_counts_.begin() + rank(), std::size_t{0});
        require(out == part(folded(ReduceOp::sum, all), before, out.size()), world_,
                "reduce_scatter_v");
    }

    void expect_letter(int from, const Letter& letter) {
        const Numbers wanted = text(from, rank(), letter);
        Numbers got(wanted.size());
        const Status status = ended(world_.recv(got, from, letter.tag));
        const bool right = got == wanted && status.source == from && status.tag == letter.tag &&
                           status.bytes == got.size() * sizeof(Number);
        require(right, world_,
                "message " + std::to_string(letter.tag) + " from " + std::to_string(from));
    }

    Communicator world_;
    std::uint64_t seed_;
    std::vector<std::size_t> own_counts_;
};

/// Messages in one communicator never match receives in the other one.
void run_duplicate(const Communicator& world, std::uint64_t seed) {
    const Communicator other = world.duplicate();
    const int next = (world.rank() + 1) % world.size();
    const int last = (world.rank() + world.size() - 1) % world.size();
    auto first = world.send(world.rank(), next, 5);
    auto second = other.send(-world.rank(), next, 5);
    require(ended(other.recv<int>(last, 5)) == -last, other, "a message in the duplicate");
    require(ended(world.recv<int>(last, 5)) == last, world, "a message beside the duplicate");
    finish(first, soon());
    finish(second, soon());
    Operations(other, seed).run_collectives(70);
}

/// Two communicators whose ranks have the opposite order, and one rank in three that is in neither.
void run_split(const Communicator& world, std::uint64_t seed) {
    const bool out = world.rank() % 3 == 2;
    const auto colour = static_cast<std::uint32_t>(world.rank() % 3);
    const auto half = world.split(out ? std::optional<std::uint32_t>() : colour, -world.rank());
    require(half.has_value() != out, world, "split");
    if (!half) return;
    std::vector<int> members;
    for (int rank = world.size(); rank-- > 0;) {
        if (rank % 3 == world.rank() % 3) members.push_back(rank);
    }
    require(half->members() == members, world, "the list of members of a half");
    Operations operations(*half, seed);
    operations.run_collectives(350);
    operations.run_counted();
    operations.run_messages();
}

void run_agreement(const Communicator& world) {
    const auto bit = std::uint64_t{1} << static_cast<unsigned>(world.rank());
    const Agreed agreed = ended(world.agree(~bit));
    const auto all = (std::uint64_t{1} << static_cast<unsigned>(world.size())) - 1;
    require(agreed.flags == ~all && agreed.lost.empty(), world, "agree");
}

}  // namespace

void run_every_operation(Node& node, std::uint64_t seed) {
    const Communicator world = node.world();
    Operations operations(world, seed);
    operations.run_collectives(700);
    operations.run_counted();
    operations.run_messages();
    operations.run_any_source();
    operations.run_calls(node);
    run_duplicate(world, seed + 100);
    run_split(world, seed + 200);
    run_agreement(world);
}

}  // namespace nexar::testing
