#include "engine/keyed_queues.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "engine/intrusive_list.hpp"
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

TEST(IntrusiveList, keeps_insertion_order) {
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

TEST(IntrusiveList, an_object_can_be_in_several_lists) {
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

TEST(IntrusiveListDeathTest, erasing_an_object_that_is_not_in_the_list_aborts) {
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

struct Keyed {
    Key key{};
    KeyedHook<Keyed> hook{};
};

struct KeyOf {
    const Key& operator()(const Keyed& one) const noexcept { return one.key; }
};

/// Compares KeyedQueues with a map of queues. With `spread` false all keys have the same hash.
void compare(std::uint64_t seed, bool spread) {
    Random random(seed);
    std::deque<Keyed> objects(300);
    std::map<std::uint64_t, std::deque<Keyed*>> plain;
    std::set<Keyed*> in;
    KeyedQueues<Keyed, &Keyed::hook, KeyOf> queues(seed);
    for (int step = 0; step < 20'000; ++step) {
        Keyed& object = objects[random.below(objects.size())];
        if (in.erase(&object) != 0) {
            queues.erase(object);
            std::erase(plain[object.key.value], &object);
            if (plain[object.key.value].empty()) plain.erase(object.key.value);
        } else {
            object.key = {.value = random.below(100), .spread = spread};
            queues.push_back(object);
            plain[object.key.value].push_back(&object);
            in.insert(&object);
        }
        ASSERT_EQ(queues.keys(), plain.size());
        const Key key{.value = random.below(100), .spread = spread};
        const auto found = plain.find(key.value);
        ASSERT_EQ(queues.first(key), found == plain.end() ? nullptr : found->second.front());
    }
    std::map<std::uint64_t, std::deque<Keyed*>> shown;
    queues.for_each([&](Keyed& one) { shown[one.key.value].push_back(&one); });
    EXPECT_EQ(shown, plain);
}

TEST(KeyedQueues, behaves_like_a_map_of_queues) {
    compare(test_seed(11), true);
}

TEST(KeyedQueues, distinguishes_keys_with_the_same_hash) {
    compare(test_seed(12), false);
}

}  // namespace
}  // namespace nexar::engine
