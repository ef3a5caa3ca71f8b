#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/buffer.hpp>
#include <nexar/chunk_collectives.hpp>
#include <nexar/export.hpp>
#include <nexar/rpc.hpp>
#include <nexar/status.hpp>
#include <nexar/wait.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nexar {

namespace detail {
class CommunicatorBody;
class MessageBody;
struct MessageEnd {
    NEXAR_EXPORT void operator()(MessageBody* message) const noexcept;
};
}  // namespace detail

/// A message that a matched probe removed from matching, so that no other receive can match it. If
/// it is destroyed without being received, the message is discarded, and its send completes as if
/// it had been received.
class Message {
public:
    using Owner = std::unique_ptr<detail::MessageBody, detail::MessageEnd>;

    Message() noexcept = default;
    Message(Owner body, const Status& status) noexcept : body_(std::move(body)), status_(status) {}

    const Status& status() const noexcept { return status_; }

    /// Receives the message; may be called once. Fails with Errc::truncated if it does not fit.
    template <detail::AnyRange R>
    Work<Status> recv(R&& into) && {
        return std::move(*this).recv(buffer(std::forward<R>(into)));
    }
    NEXAR_EXPORT Work<Status> recv(const Buffer& into) &&;

private:
    Owner body_{};
    Status status_{};
};

/// An operation that is described once and started many times. Each start must complete before the
/// next.
template <class T>
class Prepared {
public:
    using Starter = std::function<Work<T>()>;
    explicit Prepared(Starter starter) : starter_(std::move(starter)) {}

    Work<T> start() const { return starter_(); }

private:
    Starter starter_;
};

/// Starts all operations in order and sends their messages together.
inline std::vector<Work<>> start_together(std::span<const Prepared<void>> operations) {
    std::vector<Work<>> works;
    works.reserve(operations.size());
    const detail::Together together;
    for (const Prepared<void>& operation : operations) works.push_back(operation.start());
    return works;
}

namespace detail {

/// The lists of regions that send_iov() reads and recv_iov() writes.
template <class R>
concept ConstRegions =
    AnyRange<R> && std::convertible_to<std::ranges::range_reference_t<R>, ConstRegion>;
template <class R>
concept Regions = AnyRange<R> && std::convertible_to<std::ranges::range_reference_t<R>, Region>;

}  // namespace detail

/// The outcome of Communicator::agree(), equal on all ranks.
struct Agreed {
    std::uint64_t flags = 0;  // the bitwise AND of the flags of all ranks that took part
    std::vector<int> lost{};  // ranks of the communicator that have failed or left, ascending
};

/// A set of ranks that exchange messages and run collectives. A handle: copies refer to the same
/// communicator.
///
/// Messages are matched as in MPI, by communicator, source and tag. If two messages from one rank
/// match the same receive, it gets the one that was sent first, whatever their sizes. Any thread
/// may call. Every call starts at once and returns a Work; the memory is in use until the Work
/// completes. Work::cancel() ends the operation even if the other rank does not respond.
/// Collectives are in Collectives and ChunkCollectives.
///
/// A call takes a contiguous range (vector, array, span), which must outlive its Work, or a single
/// value. A send to `no_rank`, or a receive from it, completes at once and transfers nothing; its
/// Status is {no_rank, 0, 0}. A rank at the border of a grid therefore needs no special case.
///
/// When a rank leaves (Node::close), messages to and from it fail with Errc::link_closed, and when
/// this rank and another one cannot reach each other, with Errc::peer_unreachable; other messages
/// continue. Receives and probes still find messages from that rank that had arrived. A receive
/// from any_source stays pending, because this rank may still send to itself. When a rank fails,
/// everything in this communicator ends; see "Going on after a failure".
class NEXAR_EXPORT Communicator : public ChunkCollectives {
public:
    explicit Communicator(std::shared_ptr<detail::CommunicatorBody> body) noexcept
        : ChunkCollectives(std::move(body)) {}

    int rank() const noexcept { return this_rank(); }
    int size() const noexcept { return world_size(); }
    /// The index of the host that `rank` runs on. Hosts are numbered from 0 in rank order; ranks on
    /// one host have the same number. split(host(rank())) makes one communicator per host.
    int host(int rank) const;

    // Sending. When a send has completed, its memory may be reused, and its message will be
    // delivered even if this rank leaves (Node::close) before the receiver asks for it, unless a
    // member of this communicator fails first. When a send completes depends on the size of the
    // message:
    //
    //   up to 16 KiB     the message is copied, and the send completes at once;
    //   up to 64 KiB     the send completes when all of it has arrived, received or not;
    //   above 64 KiB     the send completes when a receive has matched the message and all of it
    //                    has arrived; before the match the sender transmits at most 64 KiB of it.
    //
    // A pair of ranks can have at most 1 MiB of messages sent and not yet received, plus 64 KiB per
    // communicator. Beyond that, messages of any size wait for their receive.

    template <detail::AnyRange R>
    Work<> send(R&& elements, int to, TagValue tag = 0, SendOptions options = {}) const {
        return send(const_buffer(std::forward<R>(elements)), to, tag, options);
    }
    /// Sends the bytes of one value.
    template <detail::AnyValue T>
    Work<> send(const T& value, int to, TagValue tag = 0, SendOptions options = {}) const {
        if constexpr (detail::check_value<T>()) {
            auto kept = std::make_unique<detail::Kept<T>>(value);
            const Buffer place = kept->buffer();
            return Work<>(start_send(place, to, tag, options, std::move(kept)));
        } else {
            return {};
        }
    }
    Work<> send(const ConstBuffer& elements, int to, TagValue tag = 0,
                SendOptions options = {}) const {
        return Work<>(start_send(elements, to, tag, options));
    }
    /// Sends one message from many places, see strided(). The list may be a temporary, but the
    /// memory must outlive the Work.
    template <detail::ConstRegions R = std::vector<ConstRegion>>
    Work<> send_iov(const R& regions, int to, TagValue tag = 0, SendOptions options = {}) const {
        return send_list({std::ranges::begin(regions), std::ranges::end(regions)}, to, tag,
                         options);
    }

    // Receiving. If a message is larger than the memory, the receive fails with Errc::truncated and
    // the message is lost. A smaller message is fine.

    template <detail::AnyRange R>
    Work<Status> recv(R&& elements, SourcePattern from = any_source,
                      TagPattern tag = any_tag) const {
        return recv(buffer(std::forward<R>(elements)), from, tag);
    }
    Work<Status> recv(const Buffer& elements, SourcePattern from = any_source,
                      TagPattern tag = any_tag) const {
        return Work<Status>(start_recv(elements, from, tag), &detail::take_status);
    }
    /// Receives one value: `double x = world.recv<double>(0).wait()`. It is an error if the size of
    /// the message differs from that of T, or if `from` is no_rank, which never sends a message.
    template <class T>
    Work<T> recv(SourcePattern from = any_source, TagPattern tag = any_tag) const {
        static_assert(detail::AnyValue<T>,
                      "nexar: recv<T>() receives a single value; pass a range to recv() to "
                      "receive its elements");
        if constexpr (detail::AnyValue<T>) {
            if constexpr (detail::check_value<T>()) {
                using Kept = detail::KeptMessage<T>;
                auto kept = std::make_unique<Kept>();
                const Buffer place = kept->buffer();
                return Work<T>(start_recv(place, from, tag, std::move(kept)), &Kept::take);
            }
        }
    }
    /// Receives one message into many places, filled in order.
    template <detail::Regions R = std::vector<Region>>
    Work<Status> recv_iov(const R& regions, SourcePattern from = any_source,
                          TagPattern tag = any_tag) const {
        return recv_list({std::ranges::begin(regions), std::ranges::end(regions)}, from, tag);
    }

    /// Sends and receives at the same time; completes when both have. Returns the status of the
    /// receive.
    template <detail::AnyRange Out, detail::AnyRange In>
    Work<Status> send_recv(Out&& outgoing, int to, In&& incoming, SourcePattern from,
                           TagValue tag = 0) const {
        return send_recv(const_buffer(std::forward<Out>(outgoing)), to,
                         buffer(std::forward<In>(incoming)), from, tag);
    }
    Work<Status> send_recv(const ConstBuffer& outgoing, int to, const Buffer& incoming,
                           SourcePattern from, TagValue tag = 0) const;

    // Inspecting messages without receiving them.

    /// Completes when a matching message has arrived. The message stays in matching.
    Work<Status> probe(SourcePattern from = any_source, TagPattern tag = any_tag) const;
    std::optional<Status> try_probe(SourcePattern from = any_source,
                                    TagPattern tag = any_tag) const;
    /// Completes when a matching message has arrived, and removes it from matching.
    Work<Message> matched_probe(SourcePattern from = any_source, TagPattern tag = any_tag) const;
    std::optional<Message> try_matched_probe(SourcePattern from = any_source,
                                             TagPattern tag = any_tag) const;

    // Repeating the same message.

    template <detail::AnyRange R>
    Prepared<void> prepare_send(R&& elements, int to, TagValue tag = 0,
                                SendOptions options = {}) const {
        return Prepared<void>([self = *this, memory = const_buffer(std::forward<R>(elements)), to,
                               tag, options] { return self.send(memory, to, tag, options); });
    }
    template <detail::AnyRange R>
    Prepared<Status> prepare_recv(R&& elements, SourcePattern from = any_source,
                                  TagPattern tag = any_tag) const {
        return Prepared<Status>([self = *this, memory = buffer(std::forward<R>(elements)), from,
                                 tag] { return self.recv(memory, from, tag); });
    }

    /// Repeats any operation: `start(communicator)` returns its Work.
    ///
    ///     auto step = world.prepare([&](auto& w) { return w.all_reduce(gradients, nexar::sum); });
    template <class F>
        requires std::is_invocable_r_v<Work<>, F&, const Communicator&>
    Prepared<void> prepare(F start) const {
        return Prepared<void>(
            [self = *this, start = std::move(start)]() mutable { return start(self); });
    }

    // Creating communicators. Every rank of this one must make these calls in the same order.

    /// A communicator of the same ranks whose messages never match those of this one. Creating it
    /// needs no communication. It ends with its last handle, Work and Message; messages that other
    /// ranks send in it later are dropped.
    Communicator duplicate() const;

    /// Creates one communicator per colour, with the ranks that passed that colour, ordered by key
    /// and then by rank in this communicator. Returns nullopt for a rank that passed `undefined`.
    /// Waits for all ranks.
    std::optional<Communicator> split(std::optional<std::uint32_t> colour,
                                      std::int64_t key = 0) const;
    static constexpr std::nullopt_t undefined = std::nullopt;

    /// A communicator of these ranks, in this order. Returns nullopt for a rank that is not in the
    /// list. All ranks must pass the same list; creating it needs no communication.
    template <detail::Integers R>
    std::optional<Communicator> subgroup(const R& ranks) const {
        std::vector<std::int64_t> members;
        if constexpr (std::ranges::sized_range<R>) members.reserve(std::ranges::size(ranks));
        for (const auto rank : ranks) members.push_back(static_cast<std::int64_t>(rank));
        return subgroup_of(members);
    }

    // Going on after a failure. When a member fails, all pending and later operations of this
    // communicator end with Errc::membership_changed, except remote procedure calls between others;
    // messages that nobody has received are lost. Communicators without that member are not
    // affected. The calls below, grow() and rebuild_adding() still work then, and after revoke().
    // Every surviving rank must make them in the same order.

    /// Ends all pending and later calls in this communicator, on all its ranks, with Errc::revoked,
    /// so that ranks that do not know of a failure do not wait for those that do. One rank
    /// suffices.
    void revoke() const;

    /// Agrees on the AND of the flags, and on the ranks that are lost. Uniform: if any rank gets a
    /// result, even one that fails right afterwards, all surviving ranks get the same result.
    Work<Agreed> agree(std::uint64_t flags = ~std::uint64_t{0}) const;

    /// A communicator of the ranks that have neither failed nor left, in the same order. Waits for
    /// all of them. If this one is the node's world(), the new one takes its place. Throws
    /// Errc::membership_changed on all ranks if fewer than the setting min_world are left.
    ///
    /// If the last call of this rank that makes a communicator (shrink(), grow(),
    /// elastic_checkpoint(), ...) failed before the ranks had agreed, this call completes it
    /// instead, because the other ranks may have gone on.
    Communicator shrink() const;

    /// The same, and without these ranks, whether they have failed or not. Only the other ranks
    /// call it, and all pass the same list.
    template <detail::Integers R>
    Communicator rebuild_excluding(const R& ranks) const {
        std::vector<std::int64_t> excluded;
        for (const auto rank : ranks) excluded.push_back(static_cast<std::int64_t>(rank));
        return rebuilt_excluding(excluded);
    }

    // Taking in processes that have joined, see Node::elastic_checkpoint().

    /// A communicator of the surviving ranks, in the same order, followed by the processes
    /// that have joined the cluster since. Waits for the ranks of this communicator. On a process
    /// that has just joined, Node::world() returns the new communicator.
    Communicator grow() const;
    /// The same with only these members; they are named by their rank in the cluster, see
    /// Node::members(). Every rank passes the same list.
    template <detail::Integers R>
    Communicator rebuild_adding(const R& members) const {
        std::vector<std::int64_t> added;
        for (const auto member : members) added.push_back(static_cast<std::int64_t>(member));
        return rebuilt_adding(added);
    }

    /// Calls a function that a rank of this communicator serves, see Node::call() and
    /// Node::serve().
    template <class R = Payload, class A>
        requires detail::Passable<std::remove_cvref_t<A>> && detail::Returnable<R>
    Work<R> call(int rank, const FunctionName& name, A&& argument,
                 const CallOptions& options = {}) const {
        return Work<R>(
            detail::start_call(body(), rank, name, detail::argument_of(std::forward<A>(argument)),
                               options, detail::expected<R>()),
            &detail::take_response<R>);
    }
    template <class R = Payload>
        requires detail::Returnable<R>
    Work<R> call(int rank, const FunctionName& name, const CallOptions& options = {}) const {
        return Work<R>(detail::start_call(body(), rank, name, {}, options, detail::expected<R>()),
                       &detail::take_response<R>);
    }

    /// The rank in the cluster of each rank of this communicator, see Node::members().
    std::vector<int> members() const;

    /// Ends the program on every member of the cluster, not only of this communicator. All pending
    /// and later calls of every member fail with Errc::aborted, in all communicators, including
    /// remote procedure calls and a join() that has not returned: Error::abort_code() is `code`,
    /// Error::rank() is the rank in the cluster that aborted, and the text contains `why`. The
    /// buffers of pending receives and collectives are unspecified. Only the first abort counts. A
    /// rank that is computing notices at its next call.
    ///
    /// With the setting on_abort=exit, the default, this call does not return: it logs `why`, waits
    /// at most about 2 s until the other ranks know of the abort, flushes stdout and stderr, and
    /// ends the process without running destructors. The exit status is `code` if that is 1 to 255,
    /// else 1, so that a launcher ends the other ranks. With on_abort=error, and always in a
    /// local_cluster, the call returns and the program decides what to do.
    ///
    /// Any thread may call it, including one that serves a remote procedure call. Throws
    /// Errc::closed if the node is closed. `why` is one line of at most 1024 bytes; unprintable
    /// characters are escaped.
    void abort(int code, std::string why) const;

private:
    detail::TaskOwner start_send(const ConstBuffer& elements, int to, TagValue tag,
                                 SendOptions options,
                                 std::unique_ptr<detail::Held> held = nullptr) const;
    detail::TaskOwner start_recv(const Buffer& elements, SourcePattern from, TagPattern tag,
                                 std::unique_ptr<detail::Held> held = nullptr) const;
    Work<> send_list(std::vector<ConstRegion> regions, int to, TagValue tag,
                     SendOptions options) const;
    Work<Status> recv_list(std::vector<Region> regions, SourcePattern from, TagPattern tag) const;
    std::optional<Communicator> subgroup_of(std::span<const std::int64_t> ranks) const;
    Communicator rebuilt_excluding(std::span<const std::int64_t> ranks) const;
    Communicator rebuilt_adding(std::span<const std::int64_t> members) const;
};

}  // namespace nexar
