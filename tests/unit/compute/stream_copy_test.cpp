#include "compute/stream_copy.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace nexar::compute {
namespace {

TEST(StreamCopy, copies_exactly_its_bytes_at_every_alignment) {
    constexpr std::size_t kRoom = 512;
    constexpr std::byte kUntouched{0xee};
    std::vector<std::byte> from(kRoom);
    for (std::size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
    for (std::size_t to_at = 0; to_at < 65; ++to_at) {
        for (const std::size_t from_at : {std::size_t{0}, std::size_t{1}, std::size_t{31}}) {
            for (std::size_t bytes = 0; bytes < 300; bytes += bytes < 70 ? 1 : 23) {
                std::vector<std::byte> to(kRoom, kUntouched);
                stream_copy(to.data() + to_at, from.data() + from_at, bytes);
                for (std::size_t i = 0; i < kRoom; ++i) {
                    const bool inside = i >= to_at && i < to_at + bytes;
                    ASSERT_EQ(to[i], inside ? from[from_at + i - to_at] : kUntouched)
                        << "byte " << i << " of " << bytes << " bytes to " << to_at << " from "
                        << from_at;
                }
            }
        }
    }
}

}  // namespace
}  // namespace nexar::compute
