#include "wire/plain_eager.hpp"

#include <gtest/gtest.h>

#include "samples.hpp"
#include "wire/codec.hpp"

namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::encoded;
using testing::Random;
using testing::to_hex;

bool is_plain(const MessageHeader& header) {
    return !header.awaits_grant && !header.synchronous && !header.from_reserve;
}

TEST(PlainEager, agrees_with_the_decoder_of_all_frames) {
    Random random;
    int plain = 0;
    for (int i = 0; i < 20'000; ++i) {
        auto header = testing::random_message<EagerHeader>(random);
        if (random.coin()) header.synchronous = header.from_reserve = false;
        const Bytes bytes = encoded(header);
        const auto found = decode_plain_eager(bytes);
        ASSERT_EQ(found.has_value(), is_plain(header)) << to_hex(bytes);
        if (!found) continue;
        ++plain;
        ASSERT_EQ(*found, static_cast<const MessageHeader&>(header)) << to_hex(bytes);
        ASSERT_EQ(bytes.size(), kPlainEagerBytes);
    }
    EXPECT_GT(plain, 5000);
}

TEST(PlainEager, takes_no_frame_that_the_decoder_would_refuse_or_read_otherwise) {
    Random random;
    const Bytes whole = encoded(EagerHeader{{.context = ContextId(7), .sequence = Sequence(3)}});
    for (int i = 0; i < 50'000; ++i) {
        Bytes bytes = whole;
        for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
            bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
        }
        const auto found = decode_plain_eager(bytes);
        if (!found) continue;
        const auto decoded = decode_frame(bytes);
        ASSERT_TRUE(decoded) << to_hex(bytes);
        ASSERT_EQ(static_cast<const MessageHeader&>(std::get<EagerHeader>(decoded->message)),
                  *found);
    }
}

TEST(PlainEager, needs_the_whole_frame) {
    const Bytes bytes = encoded(EagerHeader{{.context = ContextId(7)}});
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        EXPECT_FALSE(decode_plain_eager(std::span(bytes).first(n))) << n;
    }
}

}  // namespace
}  // namespace nexar::wire
