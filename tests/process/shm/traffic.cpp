#include "process/shm/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "process/p2p/member.hpp"

namespace nexar::testing {

namespace {

constexpr std::size_t kSmall = 2;                       // elements of a message that is copied
constexpr std::size_t kLarge = 75'000;                  // of one that waits for its receive
constexpr std::size_t kVector = std::size_t{1} << 20U;  // of the large all-reduce
constexpr int kEveryone = -1;

/// Element `i` of what `from` sends in a round.
std::uint32_t value(int from, std::uint64_t round, std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned>(from) * 1'000'003U + round * 7919U +
                                      i * 31U);
}

void fill(std::vector<std::uint32_t>& out, int from, std::uint64_t round) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = value(from, round, i);
}

bool is_from(const std::vector<std::uint32_t>& in, int from, std::uint64_t round) {
    for (std::size_t i = 0; i < in.size(); ++i) {
        if (in[i] != value(from, round, i)) return false;
    }
    return true;
}

bool is_sum(const std::vector<std::uint32_t>& in, int world, std::uint64_t round) {
    for (std::size_t i = 0; i < in.size(); ++i) {
        std::uint32_t expected = 0;
        for (int rank = 0; rank < world; ++rank) expected += value(rank, round, i);
        if (in[i] != expected) return false;
    }
    return true;
}

std::uint64_t sum_of(std::span<const std::uint32_t> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

}  // namespace

class Traffic::Operation {
public:
    Operation(std::string what, int with) : name(std::move(what)), peer(with) {}
    virtual ~Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    virtual detail::Task* task() const = 0;
    virtual void cancel() = 0;
    /// Waits for the end. Returns the error, which is Errc::malformed if the result is wrong.
    virtual std::optional<Error> outcome() = 0;

    bool needs(int rank) const { return peer == rank || peer == kEveryone; }

    std::string name;
    int peer;
};

namespace {

template <class T, class Base, class Check>
class OperationOf final : public Base {
public:
    OperationOf(std::string what, int with, Work<T> work, Check check)
        : Base(std::move(what), with), work_(std::move(work)), check_(std::move(check)) {}

    detail::Task* task() const override { return work_.task(); }
    void cancel() override { work_.cancel(); }
    std::optional<Error> outcome() override {
        auto result = work_.result();
        if (!result) return result.error();
        bool right = false;
        if constexpr (std::is_void_v<T>) {
            right = check_();
        } else {
            right = check_(*result);
        }
        if (right) return std::nullopt;
        return Error(Errc::malformed, "the result is wrong");
    }

private:
    Work<T> work_;
    Check check_;
};

template <class Base, class T, class Check>
std::unique_ptr<Base> operation(std::string name, int peer, Work<T> work, Check check) {
    return std::make_unique<OperationOf<T, Base, Check>>(std::move(name), peer, std::move(work),
                                                         std::move(check));
}

}  // namespace

Traffic::Traffic(Node& node) : node_(&node), world_(node.world()) {
    sums_ = node.serve("sum", [](std::span<const std::uint32_t> in) { return sum_of(in); });
}

Traffic::~Traffic() = default;

void Traffic::started() {
    auto barrier = world_.barrier();
    finish(barrier, soon());
}

std::vector<std::uint32_t>& Traffic::vector(std::size_t elements) {
    memory_.push_back(std::make_unique<std::vector<std::uint32_t>>(elements));
    return *memory_.back();
}

void Traffic::start_messages(Operations& all, int peer) {
    const std::uint64_t round = round_;
    for (const std::size_t elements : {kSmall, kLarge}) {
        const std::uint64_t tag = 2 * round + (elements == kSmall ? 0 : 1);
        std::vector<std::uint32_t>& in = vector(elements);
        all.push_back(operation<Operation>(
            "receive", peer, world_.recv(std::span(in), peer, tag),
            [&in, peer, round](const Status&) { return is_from(in, peer, round); }));
        std::vector<std::uint32_t>& out = vector(elements);
        fill(out, world_.rank(), round);
        all.push_back(operation<Operation>("send", peer, world_.send(std::span(out), peer, tag),
                                           [] { return true; }));
    }
}

void Traffic::start_call(Operations& all, int peer) {
    std::vector<std::uint32_t>& argument = vector(round_ % 2 == 0 ? kSmall : kLarge);
    fill(argument, world_.rank(), round_);
    const std::uint64_t expected = sum_of(argument);
    all.push_back(operation<Operation>("call", peer,
                                       node_->call<std::uint64_t>(peer, "sum", argument),
                                       [expected](std::uint64_t got) { return got == expected; }));
}

void Traffic::start_collectives(Operations& all) {
    const std::uint64_t round = round_;
    for (const std::size_t elements : {kSmall, kVector}) {
        std::vector<std::uint32_t>& values = vector(elements);
        fill(values, world_.rank(), round);
        all.push_back(operation<Operation>(
            "all_reduce", kEveryone, world_.all_reduce(std::span(values), sum),
            [&values, size = world_.size(), round] { return is_sum(values, size, round); }));
    }
}

Traffic::Operations Traffic::start_round() {
    memory_.clear();
    Operations all;
    for (int peer = 0; peer < world_.size(); ++peer) {
        if (peer == world_.rank()) continue;
        start_messages(all, peer);
        start_call(all, peer);
    }
    start_collectives(all);
    return all;
}

void Traffic::run_round() {
    const Operations all = start_round();
    std::optional<Error> failure;
    for (const auto& one : all) {
        if (failure) one->cancel();
        const auto error = one->outcome();
        if (error && !failure) {
            failure = Error(error->code(), fmt::format("round {}: {} with {}: {}", round_,
                                                       one->name, one->peer, error->what()));
        }
    }
    if (failure) throw Error(*failure);
    ++round_;
}

Traffic::Ended Traffic::run_round_without(int lost, Time hangs_at) {
    Operations waiting = start_round();
    Ended ended;
    const auto blame = [&](const Operation& one, const std::string& what) {
        ended.wrong.push_back(fmt::format("{} with {}: {}", one.name, one.peer, what));
    };
    const auto note = [&](Operation& one, Time now) {
        const auto error = one.outcome();
        if (!error) return;
        if (ended.all_succeeded) ended.first_failure = now;
        ended.all_succeeded = false;
        if (one.needs(lost)) {
            ended.last_failure = now;
            if (error->rank() != lost) blame(one, error->what());
        } else if (error->code() != Errc::cancelled && error->code() != Errc::outcome_unknown &&
                   error->code() != Errc::membership_changed) {
            // The unknown outcome is that of a send whose receiver is too busy to answer in time.
            // A communicator ends with its first lost member.
            blame(one, error->what());
        }
    };
    while (!waiting.empty()) {
        const bool only_others =
            std::ranges::none_of(waiting, [&](const auto& one) { return one->needs(lost); });
        if (!ended.all_succeeded && only_others) {
            for (const auto& one : waiting) one->cancel();
        }
        std::vector<detail::Task*> tasks;
        for (const auto& one : waiting) tasks.push_back(one->task());
        const std::size_t first = detail::wait_any(tasks, &hangs_at);
        if (first == tasks.size()) break;
        const auto now = std::chrono::steady_clock::now();
        note(*waiting[first], now);
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(first));
    }
    for (const auto& one : waiting) {
        ended.all_succeeded = false;
        blame(*one, "it did not end");
        one->cancel();
    }
    ++round_;
    return ended;
}

}  // namespace nexar::testing
