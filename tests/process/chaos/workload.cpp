#include "process/chaos/workload.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "process/chaos/resources.hpp"

namespace nexar::chaos {

namespace {

constexpr std::size_t kMostElements = 16'384;
constexpr std::chrono::seconds kJoinTime{30};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    std::uint64_t all = a * 0x9E3779B97F4A7C15U ^ b * 0xC2B2AE3D27D4EB4FU ^ c * 0x165667B19E3779F9U;
    all ^= all >> 29U;
    all *= 0xBF58476D1CE4E5B9U;
    return all ^ (all >> 32U);
}

std::string list(const std::vector<int>& ranks) {
    return fmt::format("{}", fmt::join(ranks, ","));
}

/// A ledgered message: its id, the world it belongs to, and a pattern that depends on the id.
std::vector<std::uint64_t> letter(std::uint64_t sender, std::uint64_t id, std::uint64_t world,
                                  std::size_t words) {
    std::vector<std::uint64_t> all(words);
    all[0] = sender;
    all[1] = id;
    all[2] = world;
    for (std::size_t i = 3; i < words; ++i) all[i] = mixed(sender, id, i);
    return all;
}

}  // namespace

Workload::Workload(Journal& journal, const WorkloadOptions& options)
    : journal_(journal),
      options_(options),
      watchdog_([this](const char* call) { hang(call); }),
      node_(join()),
      rank_(node_.rank()),
      served_(node_.serve("count",
                          [this](const std::string& id) {
                              journal_.note("ran {}", id);
                              return std::uint64_t{1};
                          })),
      shared_(node_.allocate<std::int64_t>(kMostElements)) {
    journal_.tell("joined {}", rank_);
}

void Workload::hang(const char* call) {
    journal_.tell("hang {} world {} step {}", call, number_, step_);
    if (std::getenv("CHAOS_KEEP_HUNG") != nullptr) ::pause();
    std::_Exit(kHung);
}

int Workload::run() {
    {
        const Watchdog::Call call(watchdog_, "world", kJoinTime);
        try {
            enter(node_.world(), -1);
        } catch (const Error& error) {
            if (!recover(error)) return hammer();
        }
    }
    for (;;) {
        try {
            step();
        } catch (const Error& error) {
            if (!recover(error)) return hammer();
        }
    }
}

void Workload::enter(const Communicator& world, std::int64_t parent) {
    world_.emplace(world);
    members_ = world.members();
    step_ = 0;
    // A process that has joined learns the number here.
    std::array<std::int64_t, 1> number{number_ + 1};
    number_ = parent < 0 ? 0 : number[0];
    world_->all_reduce(std::span(number), max).wait();
    number_ = number[0];
    const Resources held = resources_of_this_process();
    journal_.note("holds {} {} {} {} {}", number_, held.resident_kb, held.heap_bytes, held.mappings,
                  held.descriptors);
    journal_.tell("world {} {} {}", number_, parent, list(members_));
}

void Workload::step() {
    next_ = std::max(next_ + options_.pace, std::chrono::steady_clock::now());
    std::this_thread::sleep_until(next_);
    tell_view();
    const std::uint64_t n = step_++;
    reduce(n);
    if (world_->size() > 1) {
        message(n);
        if (n % 3 == 0) call(n);
    }
    if (n % options_.checkpoint_every == options_.checkpoint_every - 1) checkpoint();
    for (const auto& [call, time] : watchdog_.take_longest()) {
        journal_.note("longest {} {}", call, time.count());
    }
}

void Workload::tell_view() {
    const std::uint64_t before = node_.epoch();
    if (before == epoch_) return;
    const std::vector<int> members = node_.members();
    if (node_.epoch() != before) return;  // the next step tells the newer one
    epoch_ = before;
    journal_.tell("view {} {}", epoch_, list(members));
}

void Workload::reduce(std::uint64_t n) {
    const Watchdog::Call watched(watchdog_, "all_reduce");
    const auto world = static_cast<std::uint64_t>(number_);
    constexpr std::array<std::size_t, 4> kSizes{1, 64, 1024, kMostElements};
    const std::size_t size = kSizes.at(mixed(world, n, 1) % kSizes.size());
    const auto mine = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(rank_), world, n) %
                                                1'000'000'000);
    std::vector<std::int64_t> own;
    if (n % 2 == 0) own.resize(size);
    const auto numbers = n % 2 == 0 ? std::span(own) : std::span(shared_.data(), size);
    for (std::size_t i = 0; i < size; ++i) numbers[i] = mine + static_cast<std::int64_t>(i);
    journal_.note("reduce {} {} {}", number_, n, mine);
    world_->all_reduce(numbers, sum).wait();
    for (std::size_t i = 0; i < size; ++i) {
        const std::int64_t wanted =
            numbers[0] + std::ssize(members_) * static_cast<std::int64_t>(i);
        if (numbers[i] == wanted) continue;
        journal_.note("corrupt all_reduce {} {} element {}: {} instead of {}", number_, n, i,
                      numbers[i], wanted);
        break;
    }
    journal_.note("reduced {} {} {}", number_, n, numbers[0]);
}

void Workload::message(std::uint64_t n) {
    const Watchdog::Call watched(watchdog_, "message");
    const auto world = static_cast<std::uint64_t>(number_);
    const int size = world_->size();
    const int apart =
        1 + static_cast<int>(mixed(world, n, 2) % static_cast<std::uint64_t>(size - 1));
    const int to = (world_->rank() + apart) % size;
    const int from = (world_->rank() + size - apart) % size;
    constexpr std::array<std::size_t, 4> kWords{3, 400, 2500, 12'500};
    const std::size_t words = kWords.at(mixed(world, n, 3) % kWords.size());
    const std::uint64_t id = next_id_++;
    const auto out = letter(static_cast<std::uint64_t>(rank_), id, world, words);
    std::vector<std::uint64_t> in(words);
    journal_.note("send {} {} {}.{} {}", number_, n, rank_, id,
                  members_[static_cast<std::size_t>(to)]);
    Work<Status> receive = world_->recv(std::span(in), from, n);
    Work<> send = world_->send(std::span(out), to, n);
    const auto received = receive.result();
    if (received) {
        journal_.note("got {} {} {}.{} {}", in[2], n, in[0], in[1], number_);
        const auto sender = static_cast<std::uint64_t>(members_[static_cast<std::size_t>(from)]);
        if (in != letter(sender, in[1], world, words)) {
            journal_.note("corrupt message {} {} {}.{}", number_, n, in[0], in[1]);
        }
    }
    const auto sent = send.result();
    if (sent) journal_.note("sent {} {} {}.{}", number_, n, rank_, id);
    if (!received) throw received.error();
    if (!sent) throw sent.error();
}

void Workload::call(std::uint64_t n) {
    const Watchdog::Call watched(watchdog_, "call");
    const auto to = static_cast<std::size_t>(mixed(static_cast<std::uint64_t>(number_), n, 4) %
                                             members_.size());
    const std::string id = fmt::format("{}.{}", rank_, next_id_++);
    journal_.note("call {} {}", id, members_[to]);
    const auto result = node_.call<std::uint64_t>(members_[to], "count", id).result();
    if (result) return journal_.note("called {}", id);
    journal_.note("uncalled {} {}", id, name(result.error().code()));
    if (result.error().code() == Errc::evicted) throw result.error();
}

void Workload::checkpoint() {
    const Watchdog::Call watched(watchdog_, "elastic_checkpoint");
    const auto change = node_.elastic_checkpoint();
    if (change) enter(change->new_world, number_);
}

void Workload::note_failure(const Error& error) {
    const bool names_epoch = std::string_view(error.what()).find("epoch") != std::string_view::npos;
    journal_.note("failed {} {} {} {}", number_, name(error.code()), names_epoch ? 1 : 0,
                  error.what());
}

bool Workload::recover(Error error) {
    for (bool parked = false;;) {
        note_failure(error);
        if (error.code() == Errc::evicted) {
            journal_.tell("evicted {}", number_);
            return false;
        }
        if (error.code() == Errc::minority_partition) {
            if (!std::exchange(parked, true)) journal_.tell("minority {}", number_);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        } else if (remedy(error.code()) != Remedy::recover) {
            journal_.tell("trouble {}", error.what());
            std::_Exit(1);
        }
        const Watchdog::Call watched(watchdog_, "shrink");
        try {
            // Other ranks may wait for this one if only it has noticed something.
            const Communicator world = node_.world();
            world.revoke();
            const Communicator shrunk = world.shrink();
            enter(shrunk, number_);
            return true;
        } catch (const Error& another) {
            error = another;
        }
    }
}

/// Uses the old communicators as if nothing had happened; nothing may succeed.
int Workload::hammer() {
    const auto end = std::chrono::steady_clock::now() + options_.hammer;
    std::vector<std::int64_t> numbers(kMostElements, -1);
    const auto must_fail = [&](const char* what, const auto& result) {
        if (!result && result.error().code() == Errc::evicted) return;
        journal_.note("stale {} {}", what, result ? "succeeded" : result.error().what());
    };
    while (world_ && std::chrono::steady_clock::now() < end) {
        std::ranges::fill(std::span(shared_.data(), shared_.size()), -1);
        must_fail("all_reduce", world_->all_reduce(std::span(numbers), sum).result());
        must_fail("shared all_reduce",
                  world_->all_reduce(std::span(shared_.data(), shared_.size()), sum).result());
        for (int to = 0; to < world_->size(); ++to) {
            if (to == world_->rank()) continue;
            must_fail("send", world_->send(std::span(numbers), to, step_).result());
            must_fail("call", node_
                                  .call<std::uint64_t>(members_[static_cast<std::size_t>(to)],
                                                       "count", std::string("stale"))
                                  .result());
        }
    }
    journal_.tell("end");
    return kEvicted;
}

}  // namespace nexar::chaos
