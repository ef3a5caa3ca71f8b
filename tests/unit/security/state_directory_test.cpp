#include "security/state_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "support/temp_directory.hpp"
#include "unit/security/now.hpp"

namespace nexar::security {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

unsigned mode(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
}

wire::StoredSeed some_seed() {
    wire::StoredSeed seed{.incarnation = 3, .epoch = Epoch(7), .world_size = 5};
    seed.seed[0] = std::byte{9};
    return seed;
}

class StateDirectoryTest : public ::testing::Test {
protected:
    StateDirectory open() const { return StateDirectory::open(path().string()).value(); }
    fs::path path() const { return directory_ / "state"; }
    fs::path file(std::string_view name) const { return path() / name; }

    static Result<void> add_token(const StateDirectory& state) {
        return state.change_tokens([](TokenTable& table) -> Result<void> {
            const auto made = table.create({.uses = 2}, kNow);
            if (!made) return made.error();
            return {};
        });
    }

    /// The error message about a state that cannot be used.
    template <class T>
    static std::string refusal(const Result<T>& result) {
        if (result) return "no error";
        EXPECT_EQ(result.error().code(), Errc::bad_config);
        return result.error().what();
    }

private:
    TempDirectory directory_;
};

TEST_F(StateDirectoryTest, is_empty_at_first_and_private) {
    const StateDirectory state = open();
    EXPECT_EQ(mode(path()), 0700U);
    EXPECT_TRUE(state.tokens().value().all().empty());
    EXPECT_FALSE(state.seed().value());
    EXPECT_TRUE(state.addresses().value().empty());
    EXPECT_FALSE(state.peers().value());
    EXPECT_THAT(refusal(state.existing_ca()), HasSubstr("`nexar seed --state"));
}

TEST_F(StateDirectoryTest, keeps_everything_across_restarts) {
    {
        const StateDirectory state = open();
        ASSERT_TRUE(state.ca(kNow));
        ASSERT_TRUE(add_token(state));
        ASSERT_TRUE(state.keep(some_seed()));
        ASSERT_TRUE(state.keep_addresses({"127.0.0.1:4", "[::1]:5"}));
        ASSERT_TRUE(state.keep_peers("[]"));
    }
    const StateDirectory again = open();
    EXPECT_EQ(again.ca(kNow).value().certificate().to_pem(),
              again.existing_ca().value().certificate().to_pem());
    EXPECT_EQ(content(file("ca.pem")), again.existing_ca().value().certificate().to_pem());
    ASSERT_EQ(again.tokens().value().all().size(), 1U);
    EXPECT_EQ(again.tokens().value().all().begin()->second.uses, 2U);
    EXPECT_EQ(again.seed().value(), some_seed());
    EXPECT_THAT(again.addresses().value(), ::testing::ElementsAre("127.0.0.1:4", "[::1]:5"));
    EXPECT_EQ(again.peers().value(), "[]");
    for (const auto& entry : fs::directory_iterator(path())) {
        EXPECT_EQ(mode(entry.path()), 0600U) << entry.path();
    }
}

TEST_F(StateDirectoryTest, names_a_damaged_file_and_leaves_it_unchanged) {
    const StateDirectory state = open();
    ASSERT_TRUE(add_token(state));
    const std::string good = content(file("tokens"));
    for (std::size_t at = 0; at < good.size(); ++at) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        std::ofstream(file("tokens"), std::ios::binary) << bad;
        ASSERT_THAT(refusal(state.tokens()), HasSubstr(file("tokens").string())) << at;
        ASSERT_THAT(refusal(add_token(state)), HasSubstr("move it away")) << at;
        ASSERT_EQ(content(file("tokens")), bad) << at;
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
        std::ofstream(file("tokens"), std::ios::binary) << good.substr(0, size);
        ASSERT_THAT(refusal(state.tokens()), HasSubstr("cannot be read")) << size;
    }
    std::ofstream(file("tokens"), std::ios::binary) << good;
    EXPECT_EQ(state.tokens().value().all().size(), 1U);
}

TEST_F(StateDirectoryTest, does_not_mistake_one_file_for_another) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.keep(some_seed()));
    fs::copy_file(file("seed"), file("tokens"));
    fs::permissions(file("tokens"), fs::perms(0600));
    EXPECT_THAT(refusal(state.tokens()), HasSubstr("instead of"));
}

TEST_F(StateDirectoryTest, writes_nothing_if_a_change_fails) {
    const StateDirectory state = open();
    ASSERT_TRUE(add_token(state));
    const std::string before = content(file("tokens"));
    const auto changed = state.change_tokens([](TokenTable& table) -> Result<void> {
        table.create({}, kNow).value();
        return Error(Errc::invalid_argument, "no");
    });
    EXPECT_FALSE(changed);
    EXPECT_EQ(content(file("tokens")), before);
    EXPECT_TRUE(add_token(state)) << "the lock must be free again";
}

TEST_F(StateDirectoryTest, refuses_half_of_a_ca_that_was_used) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.ca(kNow));
    ASSERT_TRUE(state.keep(some_seed()));
    const std::string pem = content(file("ca.pem"));
    for (const char* lost : {"ca.pem", "ca.key"}) {
        fs::rename(file(lost), file("away"));
        EXPECT_THAT(refusal(state.ca(kNow)), HasSubstr(file(lost).string() + " is missing"));
        EXPECT_THAT(refusal(state.existing_ca()), HasSubstr(file(lost).string() + " is missing"));
        fs::rename(file("away"), file(lost));
    }
    EXPECT_EQ(state.ca(kNow).value().certificate().to_pem(), pem);
}

TEST_F(StateDirectoryTest, refuses_half_of_a_ca_for_which_a_token_exists) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.ca(kNow));
    ASSERT_TRUE(add_token(state));
    fs::remove(file("ca.pem"));
    EXPECT_THAT(refusal(state.ca(kNow)), HasSubstr(file("ca.pem").string() + " is missing"));
}

TEST_F(StateDirectoryTest, refuses_a_certificate_without_its_key_even_before_the_first_use) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.ca(kNow));
    fs::remove(file("ca.key"));
    EXPECT_THAT(refusal(state.ca(kNow)), HasSubstr(file("ca.key").string() + " is missing"));
}

// The state after a kill between the two writes.
TEST_F(StateDirectoryTest, completes_a_ca_whose_creation_was_interrupted) {
    const StateDirectory state = open();
    const auto key = state.ca(kNow).value().key().public_key_hash();
    fs::remove(file("ca.pem"));
    EXPECT_THAT(refusal(state.existing_ca()), HasSubstr("`nexar seed --state"));
    const auto completed = state.ca(kNow);
    ASSERT_TRUE(completed) << completed.error().what();
    EXPECT_EQ(completed->key().public_key_hash(), key);
    EXPECT_EQ(content(file("ca.pem")), completed->certificate().to_pem());
    EXPECT_EQ(state.existing_ca().value().certificate().to_pem(),
              completed->certificate().to_pem());
}

TEST_F(StateDirectoryTest, removes_only_the_temporary_files_of_killed_processes) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.ca(kNow));
    for (const char* name : {"ca.key.17.new", "ca.pem.17.new", "seed.4711.new", "tokens.23.new",
                             "addresses.1.new", "peers.json.99.new"}) {
        std::ofstream(file(name)) << "half";
    }
    const std::vector<std::string> others = {"notes.1.new", "seed.new", "seed.x.new",
                                             "seed.1.newer"};
    for (const std::string& name : others) std::ofstream(file(name)) << "mine";
    state.sweep();
    std::set<std::string> left;
    for (const auto& entry : fs::directory_iterator(path())) left.insert(entry.path().filename());
    std::set<std::string> expected = {"ca.key", "ca.pem", "tokens.lock"};
    expected.insert(others.begin(), others.end());
    EXPECT_EQ(left, expected);
    EXPECT_TRUE(state.existing_ca());
}

TEST_F(StateDirectoryTest, knows_whether_a_seed_is_running_on_it) {
    const StateDirectory state = open();
    EXPECT_FALSE(state.has_running_seed());
    EXPECT_FALSE(fs::exists(file("seed.lock"))) << "a check must not create the lock file";
    {
        const auto lock = state.lock_for_seed();
        ASSERT_TRUE(lock);
        EXPECT_TRUE(state.has_running_seed());
    }
    EXPECT_FALSE(state.has_running_seed());
    EXPECT_TRUE(state.lock_for_seed());
}

TEST_F(StateDirectoryTest, refuses_a_key_that_does_not_match_the_certificate) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.ca(kNow));
    const TempDirectory elsewhere;
    const auto other = StateDirectory::open(elsewhere.path()).value();
    ASSERT_TRUE(other.ca(kNow));
    fs::copy_file(elsewhere / "ca.key", file("ca.key"), fs::copy_options::overwrite_existing);
    EXPECT_FALSE(state.ca(kNow));
}

TEST_F(StateDirectoryTest, refuses_secrets_that_others_can_read) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.ca(kNow));
    for (const unsigned wide : {0604U, 0640U, 0602U, 0610U}) {
        fs::permissions(file("ca.key"), fs::perms(wide));
        EXPECT_THAT(refusal(state.ca(kNow)), HasSubstr("chmod 0600")) << wide;
    }
    fs::permissions(file("ca.key"), fs::perms(0600));
    EXPECT_TRUE(state.ca(kNow));
    fs::permissions(path(), fs::perms(0711));
    EXPECT_THAT(refusal(StateDirectory::open(path().string())), HasSubstr("chmod 0700"));
}

TEST_F(StateDirectoryTest, does_not_follow_links) {
    const TempDirectory elsewhere;
    fs::create_directory_symlink(elsewhere.path(), path());
    EXPECT_THAT(refusal(StateDirectory::open(path().string())), HasSubstr("is not a directory"));
    fs::remove(path());
    const StateDirectory state = open();
    ASSERT_TRUE(state.keep(some_seed()));
    fs::rename(file("seed"), elsewhere / "seed");
    fs::create_symlink(elsewhere / "seed", file("seed"));
    EXPECT_THAT(refusal(state.seed()), HasSubstr(file("seed").string()));
    ASSERT_TRUE(state.keep({.incarnation = 4}));
    EXPECT_FALSE(fs::is_symlink(file("seed"))) << "the link is replaced, its target is not written";
    EXPECT_EQ(state.seed().value()->incarnation, 4U);
}

TEST_F(StateDirectoryTest, can_be_used_by_one_seed_at_a_time) {
    const StateDirectory state = open();
    {
        const auto lock = state.lock_for_seed().value();
        EXPECT_THAT(refusal(open().lock_for_seed()), HasSubstr("another seed is running on"));
    }
    EXPECT_TRUE(open().lock_for_seed());
}

TEST_F(StateDirectoryTest, a_copy_of_the_directory_has_another_origin) {
    const StateDirectory state = open();
    EXPECT_FALSE(state.origin()) << "there is no key yet";
    state.ca(kNow).value();
    const auto origin = state.origin().value();
    EXPECT_TRUE(state.keep(some_seed()));
    EXPECT_TRUE(add_token(state));
    EXPECT_TRUE(state.keep(some_seed()));
    EXPECT_EQ(open().origin().value(), origin) << "writes replace files, but not the key";
    const fs::path copy = path().parent_path() / "copy";
    fs::copy(path(), copy, fs::copy_options::recursive);
    fs::permissions(copy, fs::perms::owner_all);
    const StateDirectory restored = StateDirectory::open(copy.string()).value();
    EXPECT_EQ(restored.seed().value(), some_seed());
    EXPECT_NE(restored.origin().value(), origin);
    fs::remove_all(path());
    fs::rename(copy, path());
    EXPECT_NE(open().origin().value(), origin) << "a backup in the old place is still a copy";
}

}  // namespace
}  // namespace nexar::security
