// Members exchange messages while their seed is killed and restarted.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "process/join/cluster.hpp"
#include "process/running_program.hpp"
#include "security/state_directory.hpp"
#include "support/temp_directory.hpp"

namespace nexar::testing {
namespace {

/// `nexar seed` on one directory and, from its second start on, on one port.
class KilledSeed {
public:
    explicit KilledSeed(int world) : world_(world) { start(); }

    void start() {
        std::filesystem::remove(state() + "/peers.json");  // of the one before
        program_ = std::make_unique<RunningProgram>(
            NEXAR_COMMAND,
            std::vector<std::string>{"seed", "--listen", listen_, "--world", std::to_string(world_),
                                     "--state", state()},
            std::vector<std::string>{"HOME=" + home_.path()});
        ASSERT_TRUE(program_->writes("create a join string with:")) << program_->errors();
        listen_ = directory().addresses().value().front();
    }
    void kill() {
        program_->send(SIGKILL);
        program_->wait();
    }
    security::StateDirectory directory() const {
        return security::StateDirectory::open(state()).value();
    }
    /// True if the seed has written that all members are connected to it.
    bool has_all() const {
        const auto peers = directory().peers().value();
        const std::string text = peers.value_or("");
        std::size_t connected = 0;
        for (std::size_t at = text.find("\"connected\": true"); at != std::string::npos;
             at = text.find("\"connected\": true", at + 1)) {
            ++connected;
        }
        return connected == static_cast<std::size_t>(world_);
    }
    std::string join_string(int uses) const {
        const auto state = directory();
        security::JoinString text;
        state
            .change_tokens([&](security::TokenTable& table) -> Result<void> {
                auto made = table.create({.uses = static_cast<std::uint32_t>(uses)},
                                         std::chrono::system_clock::now());
                if (!made) return made.error();
                text.token = made->token.id;
                text.secret = std::move(made->secret);
                return {};
            })
            .value();
        text.ca = state.existing_ca().value().key().public_key_hash();
        text.seeds = {listen_};
        return text.text();
    }

private:
    std::string state() const { return home_.path() + "/state"; }

    int world_;
    TempDirectory home_;
    std::string listen_ = "127.0.0.1:0";
    std::unique_ptr<RunningProgram> program_;
};

TEST(KilledSeed, does_not_disturb_members_that_exchange_messages) {
    constexpr int kWorld = 3;
    constexpr int kKills = 5;
    KilledSeed seed(kWorld);
    const std::string join_string = seed.join_string(kWorld);
    std::vector<std::future<Node>> joins;
    for (int i = 0; i < kWorld; ++i) joins.push_back(join_soon(join_string));
    std::vector<Node> nodes = all_of(joins);
    std::atomic<bool> enough = false;
    std::atomic<int> rounds = 0;
    std::vector<std::jthread> threads;
    std::vector<std::string> failures(kWorld);
    for (int i = 0; i < kWorld; ++i) {
        threads.emplace_back([&, i] {
            try {
                const Communicator world = nodes[static_cast<std::size_t>(i)].world();
                // All ranks must agree on the last round.
                for (bool go_on = true; go_on;) {
                    const int wish = enough ? 0 : 1;
                    go_on = world.all_reduce(wish, nexar::sum).wait() == world.size();
                    if (world.rank() == 0) ++rounds;
                }
            } catch (const Error& error) {
                failures[static_cast<std::size_t>(i)] = error.what();
                enough = true;
            }
        });
    }
    for (int i = 0; i < kKills && !enough; ++i) {
        await([&] { return seed.has_all() || enough; }, "the members do not return to the seed");
        const int before = rounds;
        seed.kill();
        await([&] { return rounds > before + 10 || enough; }, "traffic stops with the seed");
        seed.start();
    }
    await([&] { return seed.has_all() || enough; }, "the members do not return to the seed");
    enough = true;
    threads.clear();
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
    EXPECT_EQ(seed.directory().seed().value()->epoch, Epoch(1)) << "nobody was evicted";
}

}  // namespace
}  // namespace nexar::testing
