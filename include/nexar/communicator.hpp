#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/buffer.hpp>
#include <nexar/collectives.hpp>
#include <nexar/export.hpp>
#include <nexar/status.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
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
    template <Element T, std::size_t N>
    Work<Status> recv(std::span<T, N> into) && {
        return std::move(*this).recv(buffer(into));
    }
    NEXAR_EXPORT Work<Status> recv(const Buffer& into) &&;

private:
    Owner body_{};
    Status status_{};
};

template <>
inline Message detail::value_of<Message>(Task& task) {
    return message(task);
}

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

/// A set of ranks that talk to each other. A handle: copies are the same communicator.
///
/// Messages are matched as in MPI, by communicator, source and tag. Of two messages from one rank
/// that fit one receive, the one sent first is received first, whatever their sizes. Any thread may
/// call. Every call starts at once and returns a Work; memory is in use until that has ended.
/// Work::cancel() ends it even if the other rank does not answer. Collectives are in Collectives.
///
/// When a rank is gone, operations with it end with Errc::link_closed or Errc::timed_out, and the
/// others go on. Messages of it that had arrived are still found by receives and probes. One from
/// any_source goes on when ranks leave, since this rank may still send to itself; when a rank is
/// lost without leaving, those that wait at that moment end with its error.
class NEXAR_EXPORT Communicator : public Collectives {
public:
    explicit Communicator(std::shared_ptr<detail::CommunicatorBody> body) noexcept
        : Collectives(std::move(body)) {}

    int rank() const noexcept;
    int size() const noexcept;
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

    template <Element T, std::size_t N>
    Work<> send(std::span<T, N> elements, int to, TagValue tag = 0, SendOptions options = {}) {
        return send(const_buffer(elements), to, tag, options);
    }
    Work<> send(const ConstBuffer& elements, int to, TagValue tag = 0, SendOptions options = {});
    /// One message from many places.
    Work<> send_iov(std::span<const ConstRegion> regions, int to, TagValue tag = 0,
                    SendOptions options = {});

    // Receiving. A message that is larger than the memory is Errc::truncated, and lost; a smaller
    // one is fine.

    template <Element T, std::size_t N>
    Work<Status> recv(std::span<T, N> elements, SourcePattern from = any_source,
                      TagPattern tag = any_tag) {
        return recv(buffer(elements), from, tag);
    }
    Work<Status> recv(const Buffer& elements, SourcePattern from = any_source,
                      TagPattern tag = any_tag);
    /// One message to many places, filled in their order.
    Work<Status> recv_iov(std::span<const Region> regions, SourcePattern from = any_source,
                          TagPattern tag = any_tag);

    /// Both at once; ends when both have. The status is that of the receive.
    template <Element S, std::size_t M, Element R, std::size_t N>
    Work<Status> send_recv(std::span<S, M> outgoing, int to, std::span<R, N> incoming,
                           SourcePattern from, TagValue tag = 0) {
        return send_recv(const_buffer(outgoing), to, buffer(incoming), from, tag);
    }
    Work<Status> send_recv(const ConstBuffer& outgoing, int to, const Buffer& incoming,
                           SourcePattern from, TagValue tag = 0);

    // Looking at messages without receiving them.

    /// Ends when there is a message that fits, and leaves it.
    Work<Status> probe(SourcePattern from = any_source, TagPattern tag = any_tag);
    std::optional<Status> try_probe(SourcePattern from = any_source, TagPattern tag = any_tag);
    /// Ends when there is a message that fits, and takes it out of matching.
    Work<Message> matched_probe(SourcePattern from = any_source, TagPattern tag = any_tag);
    std::optional<Message> try_matched_probe(SourcePattern from = any_source,
                                             TagPattern tag = any_tag);

    // The same message again and again.

    template <Element T, std::size_t N>
    Prepared<void> prepare_send(std::span<T, N> elements, int to, TagValue tag = 0,
                                SendOptions options = {}) const {
        return Prepared<void>([self = *this, elements, to, tag, options]() mutable {
            return self.send(elements, to, tag, options);
        });
    }
    template <Element T, std::size_t N>
    Prepared<Status> prepare_recv(std::span<T, N> elements, SourcePattern from = any_source,
                                  TagPattern tag = any_tag) const {
        return Prepared<Status>([self = *this, elements, from, tag]() mutable {
            return self.recv(elements, from, tag);
        });
    }

    /// Any operation again and again: `start(communicator)` gives its Work.
    ///
    ///     auto step = world.prepare([&](auto& w) { return w.all_reduce(gradients, nexar::sum); });
    template <class F>
        requires std::is_invocable_r_v<Work<>, F&, Communicator&>
    Prepared<void> prepare(F start) const {
        return Prepared<void>(
            [self = *this, start = std::move(start)]() mutable { return start(self); });
    }

    // Other communicators. Every rank of this one calls these in the same order.

    /// A communicator of the same ranks whose messages never meet those of this one. Every rank
    /// makes its duplicates in the same order; nothing is sent for it. It ends with its last handle
    /// and the last Work and Message of it; what others send in it afterwards is dropped.
    Communicator duplicate();

    /// One communicator for each colour, of the ranks that gave it, ordered by key and then by rank
    /// here. Nothing for a rank whose colour is none of its own: `undefined`. Waits for all ranks.
    std::optional<Communicator> split(std::optional<std::uint32_t> colour, std::int64_t key = 0);
    static constexpr std::nullopt_t undefined = std::nullopt;

    /// A communicator of these ranks, in this order; nothing for a rank that is not among them. All
    /// ranks give the same list; nothing is sent for it.
    std::optional<Communicator> subgroup(std::span<const int> ranks);

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
};

}  // namespace nexar
