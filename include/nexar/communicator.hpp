#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/buffer.hpp>
#include <nexar/chunk_collectives.hpp>
#include <nexar/export.hpp>
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

/// A message that a matched probe took out of matching: nobody else can receive it. One that is
/// not received is thrown away with its last owner; its sender's side ends as if it had been.
class Message {
public:
    using Owner = std::unique_ptr<detail::MessageBody, detail::MessageEnd>;

    Message() noexcept = default;
    Message(Owner body, const Status& status) noexcept : body_(std::move(body)), status_(status) {}

    const Status& status() const noexcept { return status_; }

    /// Receives it, once. Errc::truncated when it does not fit.
    template <detail::AnyRange R>
    Work<Status> recv(R&& into) && {
        return std::move(*this).recv(buffer(std::forward<R>(into)));
    }
    NEXAR_EXPORT Work<Status> recv(const Buffer& into) &&;

private:
    Owner body_{};
    Status status_{};
};

/// An operation that is described once and started many times, one start at a time.
template <class T>
class Prepared {
public:
    using Starter = std::function<Work<T>()>;
    explicit Prepared(Starter starter) : starter_(std::move(starter)) {}

    Work<T> start() const { return starter_(); }

private:
    Starter starter_;
};

/// Starts all at once: what they send travels together. In their order.
inline std::vector<Work<>> start_together(std::span<const Prepared<void>> operations) {
    std::vector<Work<>> works;
    works.reserve(operations.size());
    const detail::Together together;
    for (const Prepared<void>& operation : operations) works.push_back(operation.start());
    return works;
}

namespace detail {

/// Lists of regions: what send_iov() reads and recv_iov() writes.
template <class R>
concept ConstRegions =
    AnyRange<R> && std::convertible_to<std::ranges::range_reference_t<R>, ConstRegion>;
template <class R>
concept Regions = AnyRange<R> && std::convertible_to<std::ranges::range_reference_t<R>, Region>;

}  // namespace detail

/// A set of ranks that talk to each other. A handle: copies are the same communicator.
///
/// Messages are matched as in MPI, by communicator, source and tag. Of two messages from one rank
/// that fit one receive, the one sent first is received first, whatever their sizes. Any thread may
/// call. Every call starts at once and returns a Work; memory is in use until that has ended.
/// Work::cancel() ends it even if the other rank does not answer. Collectives are in Collectives
/// and ChunkCollectives.
///
/// A call takes a contiguous range (vector, array, span), which must outlive its Work, or a single
/// value. A send to `no_rank`, and a receive from it, ends at once and moves nothing; its Status is
/// {no_rank, 0, 0}. So a rank at the border of a grid needs no special case.
///
/// When a rank is gone, operations with it end with Errc::link_closed or Errc::timed_out, and the
/// others go on. Messages of it that had arrived are still found by receives and probes. One from
/// any_source goes on when ranks leave, since this rank may still send to itself; when a rank is
/// lost without leaving, those that wait at that moment end with its error.
class NEXAR_EXPORT Communicator : public ChunkCollectives {
public:
    explicit Communicator(std::shared_ptr<detail::CommunicatorBody> body) noexcept
        : ChunkCollectives(std::move(body)) {}

    int rank() const noexcept { return this_rank(); }
    int size() const noexcept { return world_size(); }
    /// The machine that a rank runs on, from 0 in the order of ranks: those with the same number
    /// share one. split(host(rank())) makes a communicator for each.
    int host(int rank) const;

    // Sending. When a send has ended its memory may be used again, and its message is delivered
    // even if this rank leaves (Node::close) before anybody receives it. How far a message travels
    // ahead of its receive decides when that is:
    //
    //   up to 16 KiB     it is copied, and the send ends at once;
    //   up to 64 KiB     the send ends when all of it has arrived, received or not;
    //   above 64 KiB     the send ends when a receive has matched the message and all of it has
    //                    arrived; before the match at most 64 KiB of it travel.
    //
    // What was sent and not received is limited to 1 MiB per pair of ranks, and 64 KiB more per
    // communicator: beyond that, messages of any size wait for their receive.

    template <detail::AnyRange R>
    Work<> send(R&& elements, int to, TagValue tag = 0, SendOptions options = {}) const {
        return send(const_buffer(std::forward<R>(elements)), to, tag, options);
    }
    /// The message is the bytes of one value.
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
    /// One message from many places, see strided(). The list may be a temporary, the places not.
    template <detail::ConstRegions R = std::vector<ConstRegion>>
    Work<> send_iov(const R& regions, int to, TagValue tag = 0, SendOptions options = {}) const {
        return send_list({std::ranges::begin(regions), std::ranges::end(regions)}, to, tag,
                         options);
    }

    // Receiving. A message that is larger than the memory is Errc::truncated, and lost; a smaller
    // one is fine.

    template <detail::AnyRange R>
    Work<Status> recv(R&& elements, SourcePattern from = any_source,
                      TagPattern tag = any_tag) const {
        return recv(buffer(std::forward<R>(elements)), from, tag);
    }
    Work<Status> recv(const Buffer& elements, SourcePattern from = any_source,
                      TagPattern tag = any_tag) const {
        return Work<Status>(start_recv(elements, from, tag), &detail::take_status);
    }
    /// One value: `double x = world.recv<double>(0).wait()`. A message that has another size than
    /// the value is an error; so is no_rank, which sends none.
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
    /// One message to many places, filled in their order.
    template <detail::Regions R = std::vector<Region>>
    Work<Status> recv_iov(const R& regions, SourcePattern from = any_source,
                          TagPattern tag = any_tag) const {
        return recv_list({std::ranges::begin(regions), std::ranges::end(regions)}, from, tag);
    }

    /// Both at once; ends when both have. The status is that of the receive.
    template <detail::AnyRange Out, detail::AnyRange In>
    Work<Status> send_recv(Out&& outgoing, int to, In&& incoming, SourcePattern from,
                           TagValue tag = 0) const {
        return send_recv(const_buffer(std::forward<Out>(outgoing)), to,
                         buffer(std::forward<In>(incoming)), from, tag);
    }
    Work<Status> send_recv(const ConstBuffer& outgoing, int to, const Buffer& incoming,
                           SourcePattern from, TagValue tag = 0) const;

    // Looking at messages without receiving them.

    /// Ends when there is a message that fits, and leaves it.
    Work<Status> probe(SourcePattern from = any_source, TagPattern tag = any_tag) const;
    std::optional<Status> try_probe(SourcePattern from = any_source,
                                    TagPattern tag = any_tag) const;
    /// Ends when there is a message that fits, and takes it out of matching.
    Work<Message> matched_probe(SourcePattern from = any_source, TagPattern tag = any_tag) const;
    std::optional<Message> try_matched_probe(SourcePattern from = any_source,
                                             TagPattern tag = any_tag) const;

    // The same message again and again.

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

    /// Any operation again and again: `start(communicator)` gives its Work.
    ///
    ///     auto step = world.prepare([&](auto& w) { return w.all_reduce(gradients, nexar::sum); });
    template <class F>
        requires std::is_invocable_r_v<Work<>, F&, const Communicator&>
    Prepared<void> prepare(F start) const {
        return Prepared<void>(
            [self = *this, start = std::move(start)]() mutable { return start(self); });
    }

    // Other communicators. Every rank of this one calls these in the same order.

    /// A communicator of the same ranks whose messages never meet those of this one. Every rank
    /// makes its duplicates in the same order; nothing is sent for it. It ends with its last handle
    /// and the last Work and Message of it; what others send in it afterwards is dropped.
    Communicator duplicate() const;

    /// One communicator for each colour, of the ranks that gave it, ordered by key and then by rank
    /// here. Returns nullopt for a rank that passed `undefined`. Waits for all ranks.
    std::optional<Communicator> split(std::optional<std::uint32_t> colour,
                                      std::int64_t key = 0) const;
    static constexpr std::nullopt_t undefined = std::nullopt;

    /// A communicator of these ranks, in this order; nullopt for a rank that is not among them. All
    /// ranks pass the same list; nothing is sent for it.
    template <detail::Integers R>
    std::optional<Communicator> subgroup(const R& ranks) const {
        std::vector<std::int64_t> members;
        for (const auto rank : ranks) members.push_back(static_cast<std::int64_t>(rank));
        return subgroup_of(members);
    }

    /// Ends the program on every rank, whichever communicator this is. All pending and later calls
    /// of every member of the world fail with Errc::aborted, in all communicators, remote
    /// procedure calls and a join() that has not returned included: Error::abort_code() is `code`,
    /// Error::rank() the rank in the world that aborted, and the text has `why`. Buffers of
    /// receives and collectives that were pending are unspecified. Only the first abort counts.
    /// Ranks that are computing find out with their next call.
    ///
    /// With the setting on_abort=exit, the default, this does not return: it logs the sentence,
    /// waits until the other ranks have it, at most for about 2 s, flushes stdout and stderr, and
    /// ends the process without running destructors. Its status is `code` if that is 1 to 255, else
    /// 1, so that a launcher ends the other ranks. With on_abort=error, and always in a
    /// local_cluster, this returns, and the program decides.
    ///
    /// Any thread may call it, also a function that is called remotely. Throws Errc::closed when
    /// the node is closed. `why` is one line of at most 1024 bytes; what cannot be printed is
    /// escaped.
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
};

}  // namespace nexar
