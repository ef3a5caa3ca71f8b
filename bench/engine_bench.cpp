/// Measures the cost of operations with few and with many pending receives and messages.

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nexar/nexar.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/pool_profile.hpp"
#include "engine/engine.hpp"
#include "measure.hpp"
#include "report.hpp"

namespace nexar::bench {
namespace {

constexpr int kBatch = 256;

/// A node that sends to itself, with `count` pending receives and `count` pending messages of
/// distinct tags. Shows the cost of a send and a receive without any link.
class Crowd {
public:
    explicit Crowd(std::uint64_t count)
        : pool_(PoolProfile::inference()),
          engine_({}, pool_),
          context_(&engine_.add_context(ContextId(1), std::array{NodeId{}}, Rank(0))),
          receives_(count),
          count_(count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            post(receives_[i], 2 * i);
            send(2 * i + 1);
        }
    }
    ~Crowd() {
        engine_.close();
        while (engine_.poll_done() != nullptr) {
        }
    }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    /// Sends messages that match pending receives and posts these again; posts receives that match
    /// pending messages and sends these again.
    void batch() {
        for (int i = 0; i < kBatch; ++i) {
            next_ = (next_ + 7919) % count_;
            send(2 * next_);
            post(receives_[next_], 2 * next_);
            post(extra_, 2 * next_ + 1);
            send(2 * next_ + 1);
        }
    }

private:
    void post(engine::ReceiveOperation& receive, std::uint64_t tag) {
        receive.pattern = {.source = Rank(0), .tag = Tag(tag)};
        receive.content = {&in_, 1};
        engine_.start(*context_, receive);
        drain();
    }
    void send(std::uint64_t tag) {
        send_.to = Rank(0);
        send_.tag = Tag(tag);
        send_.content = {&out_, 1};
        engine_.start(*context_, send_);
        drain();
    }
    void drain() {
        while (engine_.poll_done() != nullptr) {
        }
    }

    std::array<std::byte, 8> memory_{};
    port::Bytes in_{memory_};
    port::ConstBytes out_{memory_};
    BufferPool pool_;
    engine::Engine engine_;
    engine::Context* context_;
    std::deque<engine::ReceiveOperation> receives_;
    engine::ReceiveOperation extra_;
    engine::SendOperation send_;
    std::uint64_t count_;
    std::uint64_t next_ = 0;
};

/// The same through the public API.
class ApiCrowd {
public:
    explicit ApiCrowd(std::uint64_t count)
        : nodes_(local_cluster(1)), world_(nodes_[0].world()), received_(count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            receives_.push_back(world_.recv(std::span(&received_[i], 1), 0, 2 * i));
            send(2 * i + 1);
        }
    }
    ~ApiCrowd() {
        for (std::uint64_t i = 0; i < receives_.size(); ++i) send(2 * i);
    }
    ApiCrowd(const ApiCrowd&) = delete;
    ApiCrowd& operator=(const ApiCrowd&) = delete;

    void batch() {
        for (int i = 0; i < kBatch; ++i) {
            next_ = (next_ + 7919) % receives_.size();
            send(2 * next_);
            receives_[next_].wait();
            receives_[next_] = world_.recv(std::span(&received_[next_], 1), 0, 2 * next_);
            std::uint64_t got = 0;
            world_.recv(std::span(&got, 1), 0, 2 * next_ + 1).wait();
            send(2 * next_ + 1);
        }
    }

private:
    void send(std::uint64_t tag) { world_.send(std::span(&tag, 1), 0, tag).wait(); }

    std::vector<Node> nodes_;
    Communicator world_;
    std::vector<std::uint64_t> received_;
    std::vector<Work<Status>> receives_;
    std::uint64_t next_ = 0;
};

template <class OneCrowd>
void compare(Report& report, const std::string& name) {
    OneCrowd few(10);
    OneCrowd many(10'000);
    const auto timings = measure({[&] { few.batch(); }, [&] { many.batch(); }});
    // Each iteration has two sends and two receives.
    constexpr double kNanoPerOperation = 1e9 / (4 * kBatch);
    report.row(name + "_10_waiting_ns", timings[0].median * kNanoPerOperation, "ns");
    report.row(name + "_10000_waiting_ns", timings[1].median * kNanoPerOperation, "ns");
    report.row(name + "_10000_over_10", timings[1].median / timings[0].median, "ratio");
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
    using namespace nexar::bench;
    CLI::App app("Cost of operations in nexar's engine");
    std::string json;
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    CLI11_PARSE(app, argc, argv);

    Report report(json);
    compare<Crowd>(report, "operation");
    compare<ApiCrowd>(report, "api_operation");
    return report.finish() ? 0 : 1;
}
