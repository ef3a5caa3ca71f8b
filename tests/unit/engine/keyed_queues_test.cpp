#include "engine/keyed_queues.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::engine {
namespace {

struct Object {
    int number = 0;
    Hook<Object> hook{};
    Hook<Object> other_hook{};
};

using List = IntrusiveList<Object, &Object::hook>;
using OtherList = IntrusiveList<Object, &Object::other_hook>;

std::vector<int> numbers(const List& list) {
    std::vector<int> found;
    for (const Object* at = list.first(); at != nullptr; at = List::after(*at)) {
        found.push_back(at->number);
    }
    return found;
}

TEST(IntrusiveList, keeps_the_order_in_which_objects_came) {
    std::deque<Object> objects{{.number = 1}, {.number = 2}, {.number = 3}, {.number = 4}};
    List list;
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.pop_front(), nullptr);
    for (Object& object : objects) list.push_back(object);
    EXPECT_EQ(numbers(list), (std::vector{1, 2, 3, 4}));
    list.erase(objects[1]);
    EXPECT_EQ(numbers(list), (std::vector{1, 3, 4}));
    list.erase(objects[3]);
    list.push_back(objects[1]);
    EXPECT_EQ(numbers(list), (std::vector{1, 3, 2}));
    EXPECT_EQ(list.pop_front(), &objects[0]);
    EXPECT_EQ(list.pop_front(), &objects[2]);
    EXPECT_EQ(list.pop_front(), &objects[1]);
    EXPECT_TRUE(list.empty());
    list.push_back(objects[0]);
    EXPECT_EQ(numbers(list), (std::vector{1}));
}

TEST(IntrusiveList, an_object_is_in_several_lists) {
    Object first{.number = 1};
    Object second{.number = 2};
    List list;
    OtherList other;
    list.push_back(first);
    list.push_back(second);
    other.push_back(second);
    other.push_back(first);
    list.erase(first);
    EXPECT_EQ(list.first(), &second);
    EXPECT_EQ(other.first(), &second);
    EXPECT_EQ(OtherList::after(second), &first);
}

TEST(IntrusiveListDeathTest, an_object_that_is_not_in_it_cannot_leave) {
    Object in;
    Object out;
    List list;
    list.push_back(in);
    EXPECT_DEATH(list.erase(out), "first_");
}

struct Key {
    std::uint64_t value = 0;
    std::size_t hash(std::uint64_t seed) const noexcept { return spread ? value ^ seed : 7; }
    bool spread = true;
    friend bool operator==(const Key&, const Key&) = default;
};

/// Against a map of lists; with `spread` false all keys meet in one bucket.
void compare(std::uint64_t seed, bool spread) {
    Random random(seed);
    std::deque<Object> objects(300);
    std::map<int, std::uint64_t> keys;  // of those that are in
    std::map<std::uint64_t, std::vector<Object*>> plain;
    KeyedQueues<Object, &Object::hook, Key> queues(seed);
    for (std::size_t i = 0; i < objects.size(); ++i) objects[i].number = static_cast<int>(i);
    for (int step = 0; step < 20'000; ++step) {
        Object& object = objects[random.below(objects.size())];
        if (const auto in = keys.find(object.number); in != keys.end()) {
            queues.erase({.value = in->second, .spread = spread}, object);
            std::erase(plain[in->second], &object);
            if (plain[in->second].empty()) plain.erase(in->second);
            keys.erase(in);
        } else {
            const std::uint64_t key = random.below(100);
            queues.push_back({.value = key, .spread = spread}, object);
            plain[key].push_back(&object);
            keys[object.number] = key;
        }
        ASSERT_EQ(queues.keys(), plain.size());
        const std::uint64_t key = random.below(100);
        const auto found = plain.find(key);
        ASSERT_EQ(queues.first({.value = key, .spread = spread}),
                  found == plain.end() ? nullptr : found->second.front());
    }
}

TEST(KeyedQueues, is_a_map_of_queues) {
    compare(test_seed(11), true);
}

TEST(KeyedQueues, keeps_keys_apart_that_meet_in_one_bucket) {
    compare(test_seed(12), false);
}

}  // namespace
}  // namespace nexar::engine
