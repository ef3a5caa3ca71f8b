#include <string>

#include "calls_script.hpp"
#include "seeds.hpp"

namespace nexar::fuzz {

namespace {

constexpr unsigned kNext = 0;    // the next number
constexpr unsigned kLast = 129;  // the one before
constexpr unsigned kNamed = 2;   // the registered function
constexpr unsigned kToPeer = 1;
constexpr unsigned kToSelf = 0;
constexpr unsigned kWell = 1;
constexpr unsigned kRequests = 0;  // part of a stream
constexpr unsigned kResponses = 1;

/// A size is two bytes.
using Play = Story<CallAct>;

Play asked(unsigned bytes) {
    Play story;
    story(CallAct::request, {kNext, kNamed, bytes, 0})(CallAct::payload, {bytes, 0});
    return story;
}

Play streamed() {
    Play story;
    story(CallAct::request, {kNext, kNamed, 0, 4})(CallAct::open, {kRequests, kLast})(
        CallAct::bytes, {0, 0, 4})(CallAct::finish, {0})(CallAct::turn);
    return story;
}

Play called(unsigned bytes) {
    Play story;
    story(CallAct::call, {kToPeer, bytes, 0})(CallAct::turn);
    return story;
}

}  // namespace

void add_calls_of_engine(const std::filesystem::path& root) {
    const Corpus corpus(root, "calls");
    const auto add = [&](const std::string& name, const Play& story) {
        corpus.add(name, story.bytes());
    };
    add("asked", asked(40)(CallAct::take)(CallAct::respond, {0, 20, 0})(CallAct::turn));
    add("asked_by_stream", streamed()(CallAct::take)(CallAct::respond, {0, 0, 4})(CallAct::turn)(
                               CallAct::release, {0})(CallAct::turn));
    add("stream_first",
        Play()(CallAct::open, {kRequests, kNext})(CallAct::bytes, {0, 0, 4})(CallAct::finish, {0})(
            CallAct::request, {kNext, kNamed, 0, 4})(CallAct::turn)(CallAct::take));
    add("cancelled", asked(8)(CallAct::take)(CallAct::cancel, {kLast})(CallAct::turn)(
                         CallAct::respond, {0, 8, 0}));
    add("too_late", Play()(CallAct::request, {kNext, kNamed + 16, 0, 0})(CallAct::take)(
                        CallAct::time, {9})(CallAct::turn));
    add("number_again", asked(8)(CallAct::request, {kLast, kNamed, 0, 0})(CallAct::turn));
    add("unknown", Play()(CallAct::request, {kNext, 0, 0, 0})(CallAct::request,
                                                              {kNext, 1, 0, 0})(CallAct::turn));
    add("flood", asked(1)(CallAct::room, {0})(CallAct::request, {kNext, 0, 0, 0})(
                     CallAct::request, {kNext, 0, 0, 0})(CallAct::room, {200})(CallAct::turn));
    add("answered", called(60)(CallAct::response, {kNext, kWell, 30, 0})(CallAct::payload,
                                                                         {30, 0})(CallAct::turn));
    add("answered_by_stream",
        called(60)(CallAct::response, {kNext, kWell, 0, 4})(CallAct::open, {kResponses, kLast})(
            CallAct::bytes, {0, 0, 4})(CallAct::finish, {0})(CallAct::turn));
    add("answer_stream_first",
        called(60)(CallAct::open, {kResponses, kNext})(CallAct::bytes, {0, 0, 4})(
            CallAct::response, {kNext, kWell, 0, 4})(CallAct::finish, {0})(CallAct::turn));
    add("answered_twice", called(1)(CallAct::response, {kNext, 0})(CallAct::response, {kLast, 0}));
    add("answer_to_nothing", Play()(CallAct::response, {kNext, 0})(CallAct::turn));
    add("given_up", called(1)(CallAct::give_up, {0})(CallAct::turn)(
                        CallAct::response, {kNext, kWell, 30, 0})(CallAct::payload, {30, 0}));
    add("large", Play()(CallAct::call, {kToPeer, 0, 4})(CallAct::turn)(
                     CallAct::response, {kNext, 0})(CallAct::release, {0})(CallAct::turn));
    add("lost", called(1)(CallAct::down)(CallAct::turn));
    add("to_itself", Play()(CallAct::call, {kToSelf, 50, 0})(CallAct::take)(
                         CallAct::respond, {0, 50, 0})(CallAct::turn));
    add("to_itself_cancelled", Play()(CallAct::call, {kToSelf, 50, 0})(CallAct::take)(
                                   CallAct::give_up, {0})(CallAct::turn));
    add("removed", asked(8)(CallAct::remove)(CallAct::turn));
    add("closed", asked(8)(CallAct::take)(CallAct::close)(CallAct::turn));
}

}  // namespace nexar::fuzz
