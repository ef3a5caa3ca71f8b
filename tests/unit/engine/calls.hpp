#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "hostile.hpp"

/// The fixture of hostile.hpp extended by calls: the test plays both peers and the functions that
/// this node serves.
namespace nexar::engine {

using namespace std::chrono_literals;

struct Called : Asked {
    Called() : Asked(0) {}
    CallOperation call{};
};

inline EngineOptions call_options() {
    EngineOptions options = small_options();
    options.calls.max_request = 8192;
    options.calls.max_response = 8192;
    options.calls.max_in_flight = 4;
    options.calls.max_held = 10'000;
    options.calls.max_owed = 8;
    options.calls.max_backlog = 16;
    return options;
}

class CallsTest : public HostilePeer {
protected:
    explicit CallsTest(const EngineOptions& options = call_options()) : HostilePeer(options) {
        engine_->calls().set_world(*world_);
        engine_->calls().advance(now_);
        for (FakeLink* link : {&hostile_, &honest_}) {
            link->arrive(Lane::rpc, said(wire::Preamble{.lane = wire::Lane::rpc}));
        }
        function_.name = "echo";
        EXPECT_TRUE(engine_->calls().add(function_));
    }

    /// Every call must end exactly once.
    ~CallsTest() override {
        engine_->close();
        hostile_.go_down(Error(Errc::link_closed, "closed"));
        honest_.go_down(Error(Errc::link_closed, "closed"));
        pump();
        while (InCall* call = engine_->calls().poll_call()) running_.push_back(call);
        for (InCall* call : running_) engine_->calls().respond(*call, Bytes{});
        pump();
        for (const Called& called : called_) EXPECT_EQ(called.ended, 1);
    }

    Called& call(Rank to, std::size_t bytes, std::optional<Duration> timeout = std::nullopt) {
        Called& called = called_.emplace_back();
        called.memory = pattern(bytes, bytes);
        called.call.owner = static_cast<Asked*>(&called);
        called.call.to = to;
        called.call.name = "echo";
        called.call.content = called.memory;
        called.call.max_response = 8192;
        if (timeout) called.call.deadline = now_ + *timeout;
        engine_->start(*world_, called.call);
        pump();
        return called;
    }

    void pass(Duration time) {
        now_ += time;
        engine_->calls().advance(now_);
        pump();
    }

    static wire::Request request(std::uint64_t id, std::size_t size, std::string name = "echo") {
        wire::Request made;
        made.call = wire::CallId(id);
        made.name = std::move(name);
        made.size = size;
        if (size > 256) made.place = wire::PayloadPlace::stream;
        return made;
    }
    static Bytes with_payload(const wire::Request& request) {
        return said(request) +
               pattern(request.call.value(), static_cast<std::size_t>(request.size));
    }
    static wire::Response response(std::uint64_t id, std::size_t size) {
        wire::Response made;
        made.call = wire::CallId(id);
        made.size = size;
        if (size > 256) made.place = wire::PayloadPlace::stream;
        return made;
    }
    static Bytes stream_preamble(std::uint64_t id, wire::CallPart part) {
        return said(
            wire::Preamble{.lane = wire::Lane::call, .call = wire::CallId(id), .part = part});
    }

    /// The next call whose function should run; null if there is none.
    InCall* next_call() {
        InCall* call = engine_->calls().poll_call();
        if (call != nullptr) running_.push_back(call);
        return call;
    }
    void respond(InCall& call, Result<Bytes> result) {
        std::erase(running_, &call);
        engine_->calls().respond(call, std::move(result));
        pump();
    }

    template <class Message>
    std::vector<Message> rpc_frames() const {
        return nexar::testing::frames_of<Message>(hostile_.written(Lane::rpc));
    }
    void expect_answered(std::uint64_t id, Errc code) const {
        int found = 0;
        for (const auto& one : rpc_frames<wire::Response>()) {
            if (one.call.value() != id) continue;
            ++found;
            EXPECT_EQ(name(one.code), name(code)) << one.text;
        }
        EXPECT_EQ(found, 1) << "each request has one answer";
    }

    static void expect_failed(const Called& called, Errc code) {
        ASSERT_EQ(called.ended, 1);
        ASSERT_TRUE(called.call.error);
        EXPECT_EQ(called.call.error->code(), code) << called.call.error->what();
        EXPECT_EQ(called.call.error->rank(), public_rank(called.call.to));
    }

    TimePoint now_ = TimePoint(Duration(1'000'000'000));
    Function function_{};
    std::deque<Called> called_;
    std::vector<InCall*> running_;
};

}  // namespace nexar::engine
