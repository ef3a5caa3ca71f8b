#include <string>

#include "engine_script.hpp"
#include "seeds.hpp"

namespace nexar::fuzz {

namespace {

/// Flags of headers and of local calls, as the harness reads them.
constexpr unsigned kSynchronous = 1;
constexpr unsigned kFromReserve = 2;
constexpr unsigned kAwaitsGrant = 4;
constexpr unsigned kHuge = 8;
constexpr unsigned kDue = 0;   // the next sequence
constexpr unsigned kLast = 1;  // the one before
constexpr unsigned kSkipped = 250;
constexpr unsigned kFromPeer = 1;  // a pattern
constexpr unsigned kAnything = 0;

using Play = Story<Act>;

void add(const Corpus& corpus, const std::string& name, const Play& story) {
    corpus.add(name, story.bytes());
}

constexpr unsigned low(unsigned word) {
    return word & 0xffU;
}
constexpr unsigned high(unsigned word) {
    return word >> 8U;
}

Play eager(unsigned bytes, unsigned flags = 0) {
    Play story;
    story(Act::eager, {0, kDue, low(bytes), high(bytes), flags, 0});
    story(Act::payload, {low(bytes), high(bytes)});
    return story;
}

Play streamed(unsigned bytes) {
    Play story;
    story(Act::bulk, {0, kDue, low(bytes), high(bytes), 0, 0});
    story(Act::open, {0, kLast, 1});
    story(Act::bytes, {0, low(bytes), high(bytes)});
    return story;
}

void add_kept_rules(const Corpus& corpus) {
    add(corpus, "eager", Play(eager(200))(Act::receive, {kFromPeer, 0, 1, 0})(Act::turn));
    add(corpus, "eager_expected",
        Play()(Act::receive, {kFromPeer, 0, 4, 0})(Act::eager, {0, kDue, 0, 3, 0, 0})(
            Act::payload, {100, 0})(Act::payload, {255, 255})(Act::turn));
    add(corpus, "streamed",
        Play(streamed(700))(Act::finish, {0})(Act::turn)(Act::receive,
                                                         {kFromPeer, 0, 4, 0})(Act::turn));
    add(corpus, "streamed_expected",
        Play()(Act::placement, {1})(Act::receive, {kAnything, 0, 16, 0})(
            Act::bulk, {0, kDue, 0, 8, 0, 0})(Act::open, {0, kLast, 1})(Act::bytes, {0, 0, 4})(
            Act::bytes, {0, 0, 4})(Act::finish, {0})(Act::turn));
    add(corpus, "stream_first",
        Play()(Act::open, {0, kDue, 1})(Act::bytes, {0, 88, 2})(Act::bulk, {0, kDue, 88, 2, 0, 0})(
            Act::finish, {0})(Act::turn)(Act::receive, {kFromPeer, 0, 4, 0})(Act::turn));
    add(corpus, "granted",
        Play()(Act::bulk, {0, kDue, 100, 0, kAwaitsGrant | kFromReserve, 0})(
            Act::receive, {kFromPeer, 100, 0, 0})(Act::open, {0, kLast, 1})(
            Act::bytes, {0, 100, 0})(Act::finish, {0})(Act::turn));
    add(corpus, "truncated",
        Play()(Act::bulk, {0, kDue, 1, 0, kHuge, 0})(Act::receive, {kFromPeer, 9, 0, 0})(
            Act::open, {0, kLast, 1})(Act::bytes, {0, 9, 0})(Act::turn));
    add(corpus, "early_context",
        Play()(Act::eager, {3, kDue, 9, 0, 0, 0})(Act::payload, {9, 0})(Act::make, {3})(
            Act::receive, {16 | kFromPeer, 9, 0, 0})(Act::turn));
    add(corpus, "taken_and_received",
        Play(streamed(700))(Act::take, {kFromPeer})(Act::use, {0, 0, 4})(Act::finish,
                                                                         {0})(Act::turn));
    add(corpus, "taken_and_dropped",
        Play(eager(600, kSynchronous))(Act::take, {kFromPeer})(Act::drop, {0})(Act::turn));
    add(corpus, "probed",
        Play()(Act::probe, {kAnything})(Act::eager, {0, kDue, 0, 0, 0, 0})(Act::turn)(
            Act::receive, {kAnything, 0, 0, 1})(Act::turn));
    add(corpus, "to_itself",
        Play()(Act::send, {0, 9, 0, 0})(Act::send, {0, 0, 4, kSynchronous})(
            Act::receive, {kAnything, 9, 0, 0})(Act::turn)(Act::receive,
                                                           {kAnything, 0, 4, 0})(Act::turn));
    add(corpus, "sends",
        Play()(Act::send, {1, 100, 0, 0})(Act::send, {1, 0, 8, 0})(Act::release, {0, 0})(
            Act::credit, {0, 0, 100, 4, 2})(Act::send, {1, 0, 4, kSynchronous})(Act::grant, {0, 2})(
            Act::release, {0, 1})(Act::turn));
    add(corpus, "sends_wait",
        Play()(Act::room, {1, 0})(Act::send, {1, 9, 0, 0})(Act::send, {1, 9, 0, 0})(
            Act::cancel, {0})(Act::room, {1, 99})(Act::turn));
    add(corpus, "send_cancelled",
        Play()(Act::send, {1, 0, 4, kSynchronous})(Act::cancel, {0})(
            Act::withdraw, {0, 0, 1})(Act::turn)(Act::send, {1, 0, 8, 0})(
            Act::cancel, {0})(Act::turn)(Act::withdraw, {0, 1, 2})(Act::turn));
    add(corpus, "taken_back",
        Play(streamed(700))(Act::withdraw, {0, 0, 0})(Act::receive,
                                                      {kFromPeer, 0, 4, 0})(Act::turn));
    add(corpus, "taken_back_first",
        Play()(Act::withdraw, {0, 0, 0})(Act::open, {0, kDue, 1})(
            Act::bulk, {0, kDue, 88, 2, 0, 0})(Act::turn)(Act::reset, {0}));
    add(corpus, "reset",
        Play(streamed(700))(Act::reset, {0})(Act::turn)(Act::withdraw, {0, 0, 0})(Act::turn));
    add(corpus, "no_room",
        Play()(Act::room, {0, 0})(Act::receive, {kAnything, 9, 0, 0})(
            Act::bulk, {0, kDue, 9, 0, kAwaitsGrant, 0})(Act::turn));
    add(corpus, "context_ends",
        Play()(Act::make, {1})(Act::send, {16 | 1, 9, 0, 0})(Act::eager, {1, kDue, 9, 0, 0, 0})(
            Act::payload, {9, 0})(Act::turn)(Act::end, {0})(
            Act::bulk, {1, kDue, 9, 0, kAwaitsGrant, 0})(Act::open, {1, kLast, 1})(
            Act::bytes, {0, 9, 0})(Act::turn)(Act::leave, {1})(Act::turn));
    add(corpus, "context_ended_before",
        Play()(Act::make, {2})(Act::end, {0})(Act::begin, {1, 0})(Act::begin, {2, 0})(Act::turn));
    add(corpus, "context_ends_without_room",
        Play()(Act::make, {1})(Act::send, {16 | 1, 9, 0, 0})(Act::turn)(Act::room, {1, 0})(
            Act::end, {0})(Act::turn)(Act::room, {1, 9})(Act::turn));
    add(corpus, "down",
        Play(streamed(700))(Act::receive, {kFromPeer, 0, 16, 0})(Act::send, {1, 0, 8, 0})(
            Act::down, {1})(Act::turn)(Act::receive, {kAnything, 0, 0, 0})(Act::turn));
    add(corpus, "closed",
        Play(streamed(700))(Act::send, {1, 0, 8, 0})(Act::probe, {3})(Act::close)(
            Act::receive, {kAnything, 0, 0, 0})(Act::turn));
}

// Shapes of collectives and the indices of their sizes, see engine_collectives.hpp.
constexpr unsigned kBarrier = 0;
constexpr unsigned kGive = 1;
constexpr unsigned kGet = 2;
constexpr unsigned kSum = 3;
constexpr unsigned kExchange = 4;
constexpr unsigned k64 = 2;
constexpr unsigned k200 = 3;
constexpr unsigned k3000 = 4;
constexpr unsigned kOnStream = 1;  // header flags
constexpr unsigned kOtherCall = 8;
constexpr unsigned kNotIntroduced = 16;

/// The first half of a message of operation 0, on a stream.
Play half_flow() {
    Play story;
    story(Act::part, {0, kDue, 0, kGet, k3000, kOnStream, 0});
    story(Act::flow, {0, kLast, kGet, k3000, 1});
    story(Act::bytes, {0, low(1500), high(1500)});
    return story;
}

void add_collectives(const Corpus& corpus) {
    add(corpus, "collective_early",
        Play()(Act::part, {0, kDue, 0, kGet, k200, 0, 0})(Act::payload, {150, 0})(
            Act::payload, {50, 0})(Act::collect, {0, kGet, k200})(Act::turn));
    add(corpus, "collective_streamed",
        Play(half_flow())(Act::collect, {0, kGet, k3000})(Act::turn)(
            Act::bytes, {0, low(1500), high(1500)})(Act::finish, {0})(Act::turn));
    add(corpus, "collective_stream_first",
        Play()(Act::flow, {0, kDue, kGet, k3000, 1})(Act::collect, {0, kGet, k3000})(
            Act::bytes, {0, low(1500), high(1500)})(
            Act::part, {0, kDue, 0, kGet, k3000, kOnStream, 0})(Act::turn)(
            Act::bytes, {0, low(1500), high(1500)})(Act::finish, {0})(Act::turn));
    add(corpus, "collective_given",
        Play()(Act::begin, {0, 0})(Act::collect, {0, kGive, k3000})(Act::collect, {0, kGive, k64})(
            Act::turn)(Act::release, {0, 0})(Act::credit, {1, 0, 64, 1, 2})(Act::turn));
    add(corpus, "collective_barrier",
        Play()(Act::collect, {0, kBarrier, 0})(Act::part, {0, kDue, 0, kBarrier, 0, 0, 0})(
            Act::turn)(Act::part, {0, kDue, 1, kBarrier, 0, kFromReserve, 0})(
            Act::collect, {0, kBarrier, 0})(Act::turn));
    add(corpus, "collective_sum",
        Play()(Act::collect, {0, kSum, k64})(Act::part, {0, kDue, 0, kSum, k64, 0, 0})(
            Act::payload, {64, 0})(Act::turn));
    add(corpus, "collective_exchange",
        Play()(Act::collect, {0, kExchange, k200})(Act::part, {0, kDue, 0, kExchange, k200, 0, 0})(
            Act::payload, {200, 0})(Act::turn)(Act::release, {0, 0})(Act::turn));
    add(corpus, "collective_counts_differ",
        Play()(Act::collect, {0, kExchange, k200})(Act::part, {0, kDue, 0, kExchange, k200, 32, 0})(
            Act::payload, {100, 0})(Act::turn));
    add(corpus, "collective_cancelled",
        Play(half_flow())(Act::collect, {0, kGet, k3000})(Act::turn)(Act::cancel, {0})(Act::turn)(
            Act::part, {0, kDue, 0, kGet, k200, 0, 0})(Act::payload, {200, 0}));
    add(corpus, "collective_aborted",
        Play()(Act::begin, {0, 0})(Act::abort, {0, 1, 1})(Act::collect, {0, kBarrier, 0})(
            Act::collect, {0, kBarrier, 0})(Act::abort, {0, 0, 9})(Act::turn)(
            Act::abort, {0, 0, 1})(Act::turn));
    add(corpus, "collective_compared",
        Play()(Act::begin, {0, 0})(Act::collect, {0, kGet, k200})(Act::time, {1})(
            Act::mismatch, {0, 0, 1})(Act::turn)(Act::mismatch, {0, 0, 0})(Act::turn)(
            Act::mismatch, {0, 0, 0})(Act::turn));
    add(corpus, "collective_other_call",
        Play()(Act::collect, {0, kGet, k200})(Act::part, {0, kDue, 0, kGet, k200, kOtherCall, 0})(
            Act::payload, {200, 0})(Act::turn)(Act::time, {21})(Act::turn));
    add(corpus, "collective_reset",
        Play(half_flow())(Act::collect, {0, kGet, k3000})(Act::turn)(Act::reset, {0})(Act::turn)(
            Act::time, {21})(Act::turn));
    add(corpus, "collective_late",
        Play()(Act::begin, {0, 0})(Act::collect, {0, kGet, k200})(Act::time, {100})(Act::turn));
    add(corpus, "collective_context_ends",
        Play()(Act::make, {1})(Act::part, {1, kDue, 3, kGet, k3000, kOnStream, 0})(
            Act::flow, {1, kLast, kGet, k3000, 1})(Act::flow, {1, kSkipped, kGet, k3000, 1})(
            Act::bytes, {0, 99, 0})(Act::part, {1, kDue, 4, kGet, k200, 0, 0})(
            Act::payload, {100, 0})(Act::end, {0})(Act::turn)(Act::payload, {100, 0})(
            Act::flow, {1, kDue, kGet, k3000, 1})(Act::leave, {1})(Act::turn));
    add(corpus, "collective_down",
        Play(half_flow())(Act::collect, {0, kGet, k3000})(Act::collect, {0, kGive, k3000})(
            Act::turn)(Act::down, {1})(Act::turn)(Act::collect, {0, kBarrier, 0})(Act::turn));
}

void add_broken_collectives(const Corpus& corpus) {
    add(corpus, "collective_not_introduced",
        Play()(Act::part, {0, kDue, 0, kGet, k200, kNotIntroduced, 0}));
    add(corpus, "collective_skips", Play()(Act::part, {0, kSkipped, 0, kGet, k200, 0, 0}));
    add(corpus, "collective_no_such_message",
        Play()(Act::collect, {0, kGet, k200})(Act::part, {0, kDue, 0, kGet, k200, 0, 3})(
            Act::payload, {200, 0})(Act::turn));
    add(corpus, "collective_two_streams",
        Play(half_flow())(Act::flow, {0, kLast, kGet, k3000, 1})(Act::turn));
    add(corpus, "collective_two_ways",
        Play()(Act::flow, {0, kDue, kGet, k3000, 1})(Act::part, {0, kDue, 0, kGet, k200, 0, 0}));
    add(corpus, "collective_ends_short",
        Play(half_flow())(Act::collect, {0, kGet, k3000})(Act::turn)(Act::finish, {0})(Act::turn));
    add(corpus, "collective_overrun",
        Play(half_flow())(Act::collect, {0, kGet, k3000})(Act::turn)(
            Act::bytes, {0, low(1501), high(1501)})(Act::turn));
    add(corpus, "collective_too_far_ahead",
        Play()(Act::begin, {0, 0})(Act::abort, {0, 1, 1})(Act::abort, {0, 2, 1})(
            Act::abort, {0, 3, 1})(Act::abort, {0, 4, 1})(Act::abort, {0, 255, 1}));
    add(corpus, "collective_credit_never_taken", Play()(Act::credit, {1, 0, 1, 0, 1}));
}

void add_broken_rules(const Corpus& corpus) {
    add(corpus, "sequence_skips", Play()(Act::eager, {0, kSkipped, 0, 0, 0, 0}));
    add(corpus, "no_credit", Play(eager(4096))(Act::eager, {0, kDue, 1, 0, 0, 0}));
    add(corpus, "credit_never_taken", Play()(Act::credit, {0, 0, 1, 0, 1}));
    add(corpus, "grant_never_announced", Play()(Act::grant, {0, 0}));
    add(corpus, "answer_never_asked", Play()(Act::withdraw, {0, 0, 1}));
    add(corpus, "too_many_contexts",
        Play()(Act::eager, {1, kDue, 0, 0, 0, 0})(Act::eager, {2, kDue, 0, 0, 0, 0})(
            Act::eager, {3, kDue, 0, 0, 0, 0})(Act::eager, {4, kDue, 0, 0, 0, 0}));
    add(corpus, "context_means_another", Play()(Act::make, {1})(Act::begin, {1, 2}));
    add(corpus, "context_not_introduced", Play()(Act::eager, {0, kDue, 0, 0, 16, 0}));
    add(corpus, "context_left_unknown", Play()(Act::leave, {4}));
    add(corpus, "overrun", Play(streamed(700))(Act::bytes, {0, 1, 0})(Act::turn));
    add(corpus, "ends_short",
        Play()(Act::bulk, {0, kDue, 9, 0, 0, 0})(Act::open, {0, kLast, 1})(Act::bytes, {0, 8, 0})(
            Act::finish, {0})(Act::turn));
    add(corpus, "two_streams", Play(streamed(700))(Act::open, {0, kLast, 1})(Act::turn));
    add(corpus, "taken_then_cut_off",
        Play(streamed(700))(Act::take, {kFromPeer})(Act::withdraw, {0, 0, 0})(
            Act::grant, {0, 9})(Act::turn)(Act::drop, {0}));
    add(corpus, "two_ways", Play()(Act::open, {0, kDue, 1})(Act::eager, {0, kDue, 9, 0, 0, 0}));
    add(corpus, "no_frame", Play()(Act::raw, {2, 8, 1, 99, 0, 0, 0, 0, 0, 0}));
}

}  // namespace

void add_engine(const std::filesystem::path& root) {
    const Corpus corpus(root, "engine");
    add_kept_rules(corpus);
    add_broken_rules(corpus);
    add_collectives(corpus);
    add_broken_collectives(corpus);
}

}  // namespace nexar::fuzz
