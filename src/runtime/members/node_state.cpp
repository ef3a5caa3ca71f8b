// How the application's state reaches members that join.
//
// Ranks 0 to senders - 1 of the new world each send a part of it to every rank that joins: a header
// with the size and a digest of the whole state, and then their part in pieces. All of that goes
// over a communicator of its own, so that it never meets the program's messages.

#include "runtime/members/node_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "base/mix.hpp"
#include "runtime/members/membership_calls.hpp"

namespace nexar::detail {

namespace {

/// The part of `bytes` bytes of state that one of several senders sends.
struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
};
Part part_of(std::size_t bytes, std::size_t sender, std::size_t senders) {
    return {.begin = bytes / senders * sender + std::min(sender, bytes % senders),
            .end = bytes / senders * (sender + 1) + std::min(sender + 1, bytes % senders)};
}

/// Calls `piece` for each piece of a part.
template <class Piece>
void for_each_piece(const Part& part, Piece piece) {
    for (std::size_t begin = part.begin; begin < part.end; begin += kStatePieceBytes) {
        piece(begin, std::min(kStatePieceBytes, part.end - begin));
    }
}

/// Finds programs whose ranks have different state; not a defence against anybody.
std::uint64_t digest_of(std::span<const std::byte> state) {
    std::uint64_t digest = state.size();
    for (; !state.empty(); state = state.subspan(std::min(state.size(), sizeof digest))) {
        std::uint64_t word = 0;
        std::memcpy(&word, state.data(), std::min(state.size(), sizeof word));
        digest = mixed(digest ^ word);
    }
    return digest;
}

Error late_state(const char* what) {
    return {Errc::timed_out, fmt::format("the state of the application was not {} within the "
                                         "setting collective_timeout",
                                         what)};
}

/// Returns the error of a send, if any.
std::optional<Error> send_state(const Communicator& world, const std::vector<int>& joined,
                                const StateHooks& hooks, std::size_t senders, Duration timeout) {
    const Communicator lane = world.duplicate();
    const auto me = static_cast<std::size_t>(world.rank());
    if (me >= senders) return std::nullopt;
    const std::vector<std::byte> state = hooks.save ? hooks.save() : std::vector<std::byte>{};
    const StateHeader header{.bytes = state.size(), .digest = digest_of(state)};
    const Part part = part_of(state.size(), me, senders);
    std::vector<Work<>> works;
    for (const int rank : joined) {
        works.push_back(lane.send(header, rank, kStateSizeTag));
        for_each_piece(part, [&](std::size_t begin, std::size_t bytes) {
            works.push_back(lane.send(std::span(state).subspan(begin, bytes), rank, kStatePartTag));
        });
    }
    std::optional<Error> failure;
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (Work<>& work : works) {
        if (!work.wait_until(deadline)) {
            if (!failure) failure = late_state("taken");
            work.cancel();
        }
        const auto sent = work.result();
        if (!sent && !failure) failure = sent.error();
    }
    return failure;
}

void check_same_state(const StateHeader& first, const StateHeader& other, int rank) {
    const ErrorContext where{.rank = rank, .operation = "world"};
    if (first.bytes != other.bytes) {
        throw Error(Errc::invalid_argument,
                    fmt::format("rank 0 has {} bytes of state, but rank {} has {}; "
                                "StateHooks::save must return the same on all members",
                                first.bytes, rank, other.bytes),
                    where);
    }
    if (first.digest != other.digest) {
        throw Error(Errc::invalid_argument,
                    fmt::format("rank 0 and rank {} have different states of {} bytes; "
                                "StateHooks::save must return the same on all members",
                                rank, first.bytes),
                    where);
    }
}

/// Takes the address space, but not yet the memory, for that many bytes.
void reserve(std::vector<std::byte>& state, std::uint64_t bytes) {
    const auto refuse = [&] {
        throw Error(
            Errc::out_of_memory,
            fmt::format("there is no memory for the {} bytes of the application's state", bytes),
            {.operation = "world"});
    };
    if (bytes > state.max_size()) refuse();
    try {
        state.reserve(static_cast<std::size_t>(bytes));
    } catch (const std::bad_alloc&) {
        refuse();
    }
}

}  // namespace

std::vector<std::byte> receive_state(const Communicator& world, std::size_t senders,
                                     Duration timeout) {
    const Communicator lane = world.duplicate();
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    const auto taken = [&](auto work) {
        if (!work.wait_until(deadline)) {
            work.cancel();
            static_cast<void>(work.result());
            throw late_state("sent").within({.operation = "world"});
        }
        return work.wait();
    };
    StateHeader first;
    std::vector<std::byte> state;
    for (std::size_t sender = 0; sender < senders; ++sender) {
        const int from = static_cast<int>(sender);
        const auto header = taken(lane.recv<StateHeader>(from, kStateSizeTag));
        if (sender == 0) {
            first = header;
            reserve(state, header.bytes);
        }
        check_same_state(first, header, from);
        const Part part = part_of(static_cast<std::size_t>(first.bytes), sender, senders);
        for_each_piece(part, [&](std::size_t begin, std::size_t bytes) {
            state.resize(begin + bytes);
            taken(lane.recv(std::span(state).subspan(begin, bytes), from, kStatePartTag));
        });
    }
    return state;
}

void welcome_joiners(const Made& made) {
    if (made.joined.empty() || made.senders == 0) return;
    const auto failure =
        send_state(Communicator(made.body), made.joined, made.body->node->state_hooks(),
                   made.senders, made.body->node->collective_timeout());
    // The world has changed all the same. If a member is lost, the next call in the new world fails
    // on all ranks, and not only on those that send.
    const bool gone =
        failure && (remedy(failure->code()) == Remedy::recover ||
                    failure->code() == Errc::link_closed || failure->code() == Errc::timed_out);
    if (gone) NEXAR_LOG_WARNING("the state did not reach all joiners: {}", failure->what());
    if (failure && !gone) throw *failure;
}

}  // namespace nexar::detail
