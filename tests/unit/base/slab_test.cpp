#include "base/slab.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar {
namespace {

struct Counted {
    explicit Counted(int& alive, std::uint64_t with = 0) noexcept : counter(&alive), value(with) {
        ++alive;
    }
    ~Counted() { --*counter; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    int* counter;
    std::uint64_t value;
};

TEST(Slab, constructs_with_arguments_and_destroys_each_object_once) {
    int alive = 0;
    Slab<Counted> slab;
    Counted& first = slab.make(alive, 5U);
    Counted& second = slab.make(alive);
    EXPECT_EQ(first.value, 5U);
    EXPECT_EQ(second.value, 0U);
    EXPECT_EQ(alive, 2);
    EXPECT_EQ(slab.used(), 2U);
    slab.end(first);
    EXPECT_EQ(alive, 1);
    slab.end(second);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(slab.used(), 0U);
}

TEST(Slab, reuses_memory_before_allocating_more) {
    Slab<std::uint64_t> slab;
    EXPECT_EQ(slab.held_bytes(), 0U);
    std::vector<std::uint64_t*> made;
    for (int i = 0; i < 5000; ++i) made.push_back(&slab.make(1U));
    const std::size_t held = slab.held_bytes();
    EXPECT_GE(held, 5000 * sizeof(std::uint64_t));
    EXPECT_LE(held, 2 * 5000 * sizeof(std::uint64_t));
    std::set<std::uint64_t*> places(made.begin(), made.end());
    EXPECT_EQ(places.size(), made.size());
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t* object : made) slab.end(*object);
        for (std::uint64_t*& object : made) object = &slab.make(2U);
        EXPECT_EQ(slab.held_bytes(), held);
    }
    for (std::uint64_t* object : made) slab.end(*object);
    EXPECT_EQ(slab.held_bytes(), held);
}

TEST(Slab, objects_keep_their_address_and_content) {
    Random random(test_seed(2));
    int alive = 0;
    Slab<Counted> slab;
    std::map<Counted*, std::uint64_t> objects;
    for (std::uint64_t i = 0; i < 50'000; ++i) {
        if (objects.empty() || random.chance(0.52)) {
            Counted& made = slab.make(alive, i);
            ASSERT_TRUE(objects.emplace(&made, i).second) << "two objects in one place";
        } else {
            const auto at = objects.begin();
            ASSERT_EQ(at->first->value, at->second);
            slab.end(*at->first);
            objects.erase(at);
        }
        ASSERT_EQ(slab.used(), objects.size());
    }
    for (const auto& [object, value] : objects) {
        EXPECT_EQ(object->value, value);
        slab.end(*object);
    }
    EXPECT_EQ(alive, 0);
}

template <class T>
class SlabOf : public ::testing::Test {};

struct alignas(64) Aligned {
    std::array<std::byte, 70> bytes{};
};
struct Large {
    std::array<std::byte, 5000> bytes{};
};
using Kinds = ::testing::Types<char, std::uint16_t, Aligned, Large>;
TYPED_TEST_SUITE(SlabOf, Kinds);

TYPED_TEST(SlabOf, aligns_every_kind_of_object) {
    Slab<TypeParam> slab;
    std::vector<TypeParam*> made;
    for (int i = 0; i < 100; ++i) {
        made.push_back(&slab.make());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.back()) % alignof(TypeParam), 0U);
        *made.back() = TypeParam{};
    }
    EXPECT_GE(slab.held_bytes(), 100 * sizeof(TypeParam));
    for (TypeParam* object : made) slab.end(*object);
}

#ifdef NEXAR_SLAB_POISONS
TEST(SlabDeathTest, address_sanitizer_detects_use_of_an_ended_object) {
    Slab<std::array<int, 8>> slab;
    auto& object = slab.make();
    slab.end(object);
    const volatile int* inside = &object[3];
    EXPECT_DEATH(static_cast<void>(*inside), "use-after-poison");
}
#endif

TEST(SlabDeathTest, asserts_that_it_outlives_its_objects) {
    EXPECT_DEATH(
        {
            Slab<int> slab;
            slab.make(1);
        },
        "every object must be ended before its slab");
}

}  // namespace
}  // namespace nexar
