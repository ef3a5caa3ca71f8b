#include "runtime/context_id.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace nexar::runtime {
namespace {

using wire::ContextOrigin;

ClusterId cluster() {
    std::array<std::byte, ClusterId::kBytes> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(0x10 + i);
    return ClusterId(bytes);
}

constexpr ContextOrigin kOrigin{
    .parent = ContextId(0x1122334455667788), .creation = 3, .colour = 5, .epoch = Epoch(9)};

TEST(ContextId, is_the_same_on_every_member) {
    EXPECT_EQ(context_id(cluster(), kOrigin), context_id(cluster(), kOrigin));
    const ContextId before = context_id(cluster(), kOrigin);
    ContextOrigin other = kOrigin;
    other.creation = 4;
    context_id(cluster(), other);
    EXPECT_EQ(context_id(cluster(), kOrigin), before) << "ids computed in between have no effect";
}

TEST(ContextId, is_identical_across_builds_and_machines) {
    // The first 8 bytes, little-endian, of SHA-256 over the cluster id and the four numbers.
    EXPECT_EQ(context_id(cluster(), kOrigin).value(), 0x69f3bdbb4e824943U);
}

TEST(ContextId, changes_when_any_input_changes) {
    std::set<std::uint64_t> ids{context_id(cluster(), kOrigin).value()};
    std::size_t made = 1;
    const auto add = [&](auto change) {
        ContextOrigin changed = kOrigin;
        change(changed);
        ids.insert(context_id(cluster(), changed).value());
        EXPECT_EQ(ids.size(), ++made);
    };
    for (unsigned bit = 0; bit < 64; ++bit) {
        const std::uint64_t flip = std::uint64_t{1} << bit;
        add([&](ContextOrigin& o) { o.parent = ContextId(o.parent.value() ^ flip); });
        add([&](ContextOrigin& o) { o.creation ^= flip; });
        add([&](ContextOrigin& o) { o.colour ^= flip; });
        add([&](ContextOrigin& o) { o.epoch = Epoch(o.epoch.value() ^ flip); });
    }
    for (std::size_t i = 0; i < ClusterId::kBytes; ++i) {
        auto bytes = cluster().bytes();
        bytes[i] ^= std::byte{1};
        ids.insert(context_id(ClusterId(bytes), kOrigin).value());
        EXPECT_EQ(ids.size(), ++made);
    }
}

TEST(ContextId, depends_on_which_field_holds_a_number) {
    const ContextId parent = context_id({}, {.parent = ContextId(1)});
    const ContextId creation = context_id({}, {.creation = 1});
    const ContextId colour = context_id({}, {.colour = 1});
    const ContextId epoch = context_id({}, {.epoch = Epoch(1)});
    EXPECT_EQ((std::set{parent, creation, colour, epoch, context_id({}, {})}).size(), 5U);
}

}  // namespace
}  // namespace nexar::runtime
