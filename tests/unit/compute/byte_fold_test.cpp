#include "compute/byte_fold.hpp"

#include <algorithm>
#include <numeric>

#include "compute/user_op.hpp"
#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

struct Piece {
    std::size_t offset;
    std::size_t size;
};

/// Cuts an array into pieces of a random maximum size, in order or shuffled within a window that
/// keeps the number of split elements within the slots.
std::vector<Piece> random_pieces(std::size_t bytes, Random& random) {
    const std::array<std::size_t, 4> largest{1, 3, 40, 700};
    const std::size_t limit = largest.at(random() % largest.size());
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < bytes;) {
        const std::size_t size = std::min(bytes - at, 1 + random() % limit);
        pieces.push_back({at, size});
        at += size;
    }
    const std::size_t window = 1 + random() % 16;
    for (std::size_t i = 0; i < pieces.size(); i += window) {
        const auto first = pieces.begin() + static_cast<std::ptrdiff_t>(i);
        const auto last =
            pieces.begin() + static_cast<std::ptrdiff_t>(std::min(i + window, pieces.size()));
        std::shuffle(first, last, random);
    }
    return pieces;
}

/// Feeds each piece from memory of its own at an odd address, as in a packet.
void feed_all(ByteFold& fold, const Bytes& incoming, const std::vector<Piece>& pieces) {
    std::uint64_t fed = 0;
    for (const Piece& piece : pieces) {
        Bytes packet(1 + piece.size);
        std::memcpy(packet.data() + 1, incoming.data() + piece.offset, piece.size);
        ASSERT_FALSE(fold.done());
        const Result<void> result =
            fold.feed(piece.offset, std::span(packet).subspan(1, piece.size));
        ASSERT_TRUE(result) << result.error().what();
        fed += piece.size;
        ASSERT_EQ(fold.bytes_done(), fed);
    }
    ASSERT_TRUE(fold.done());
}

/// `op` determines how exact the comparison is, see difference().
void expect_as_whole(const Reducer& reducer, ReduceOp op, std::size_t count, Random& random) {
    const Bytes incoming = random_elements(reducer.dtype(), count, random);
    const Bytes local = random_elements(reducer.dtype(), count, random);
    for (const Side side : {Side::left, Side::right}) {
        Bytes want(local.size());
        if (side == Side::left) {
            reducer.fold(want.data(), incoming.data(), local.data(), count);
        } else {
            reducer.fold(want.data(), local.data(), incoming.data(), count);
        }
        Bytes in_place = local;
        ByteFold onto_itself(reducer, in_place.data(), in_place.data(), count, side);
        feed_all(onto_itself, incoming, random_pieces(incoming.size(), random));
        ASSERT_EQ(difference(reducer.dtype(), op, in_place, want), "");

        Bytes out(local.size(), std::byte{0xcd});
        ByteFold apart(reducer, out.data(), local.data(), count, side);
        feed_all(apart, incoming, random_pieces(incoming.size(), random));
        ASSERT_EQ(difference(reducer.dtype(), op, out, want), "");
    }
}

/// Elements of any size; the operator adds bytes.
template <std::size_t Size>
void expect_structs_as_whole(std::size_t count, Random& random) {
    using Element = std::array<std::uint8_t, Size>;
    const Reducer reducer = reducer_of<Element>(
        [](const Element& a, const Element& b) {
            Element both;
            for (std::size_t i = 0; i < Size; ++i) both[i] = static_cast<std::uint8_t>(a[i] - b[i]);
            return both;
        },
        false);
    ASSERT_EQ(reducer.element_size(), Size);
    Bytes incoming(Size * count);
    Bytes out(Size * count);
    for (auto* bytes : {&incoming, &out}) {
        for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    }
    Bytes want(out.size());
    reducer.fold(want.data(), incoming.data(), out.data(), count);
    ByteFold fold(reducer, out.data(), out.data(), count, Side::left);
    feed_all(fold, incoming, random_pieces(incoming.size(), random));
    ASSERT_EQ(out, want);
}

TEST(ByteFold, any_cut_of_elements_of_any_size_equals_one_fold) {
    Random random(seed());
    for (int run = 0; run < 40; ++run) {
        expect_structs_as_whole<1>(100, random);
        expect_structs_as_whole<3>(100, random);
        expect_structs_as_whole<12>(50, random);
        expect_structs_as_whole<17>(50, random);
        expect_structs_as_whole<1000>(9, random);
        if (HasFatalFailure()) return;
    }
}

TEST(ByteFold, rejects_repeated_bytes_of_a_large_element) {
    using Element = std::array<std::uint8_t, 100>;
    const Reducer reducer =
        reducer_of<Element>([](const Element& a, const Element&) { return a; }, false);
    Bytes out(200);
    const Bytes incoming(200);
    ByteFold fold(reducer, out.data(), out.data(), 2, Side::left);
    ASSERT_TRUE(fold.feed(10, std::span(incoming).first(50)));
    EXPECT_EQ(fold.feed(59, std::span(incoming).first(2)).error().code(), Errc::invalid_argument);
    EXPECT_EQ(fold.feed(0, std::span(incoming).first(100)).error().code(), Errc::invalid_argument);
    ASSERT_TRUE(fold.feed(60, std::span(incoming).first(140)));
    ASSERT_TRUE(fold.feed(0, std::span(incoming).first(10)));
    EXPECT_TRUE(fold.done());
}

TEST(ByteFold, any_cut_in_any_order_equals_one_fold_for_every_pair) {
    Random random(seed());
    for (const DType dtype : kDTypes) {
        for (const ReduceOp op : kOps) {
            if (!makes_sense(dtype, op)) continue;
            SCOPED_TRACE(std::string(name(dtype)) + " " + std::string(name(op)));
            for (std::size_t i = 0; i < scaled(20); ++i) {
                expect_as_whole(*reducer_for(dtype, op), op, random() % 200, random);
                ASSERT_FALSE(HasFatalFailure());
            }
        }
    }
}

TEST(ByteFold, the_side_of_the_incoming_operand_is_kept) {
    Random random(seed());
    const Reducer minus = reducer_of<std::int32_t>(
        [](std::int32_t a, std::int32_t b) {
            return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) -
                                             static_cast<std::uint32_t>(b));
        },
        false);
    for (std::size_t i = 0; i < scaled(100); ++i) {
        expect_as_whole(minus, ReduceOp::bit_xor, random() % 200, random);
        ASSERT_FALSE(HasFatalFailure());
    }
    std::int32_t local = 10;
    const std::array incoming{std::byte{3}, std::byte{0}, std::byte{0}, std::byte{0}};
    auto* out = reinterpret_cast<std::byte*>(&local);
    ByteFold left(minus, out, out, 1, Side::left);
    ASSERT_TRUE(left.feed(0, incoming));
    EXPECT_EQ(local, 3 - 10);
    ByteFold right(minus, out, out, 1, Side::right);
    ASSERT_TRUE(right.feed(0, incoming));
    EXPECT_EQ(local, -7 - 3);
}

class ByteFoldErrors : public ::testing::Test {
protected:
    static constexpr std::size_t kCount = 100;

    ByteFoldErrors() {
        std::iota(incoming_.begin(), incoming_.end(), 1);
        std::iota(local_.begin(), local_.end(), 1000);
    }

    std::span<const std::byte> at(std::size_t offset, std::size_t size) const {
        return std::as_bytes(std::span(incoming_)).subspan(offset, size);
    }
    void feed(std::size_t offset, std::size_t size) {
        const Result<void> result = fold_.feed(offset, at(offset, size));
        ASSERT_TRUE(result) << result.error().what();
    }
    void expect_refused(Errc code, std::size_t offset, std::span<const std::byte> bytes) {
        const std::vector<std::uint64_t> before = local_;
        const std::uint64_t done = fold_.bytes_done();
        const Result<void> result = fold_.feed(offset, bytes);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code(), code) << result.error().what();
        EXPECT_EQ(local_, before);
        EXPECT_EQ(fold_.bytes_done(), done);
    }
    /// Completes the array and expects the same result as without the failure.
    void expect_completes_with(const std::vector<Piece>& rest) {
        for (const Piece& piece : rest) feed(piece.offset, piece.size);
        EXPECT_TRUE(fold_.done());
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(local_[i], 1001 + 2 * i);
    }

    std::vector<std::uint64_t> incoming_ = std::vector<std::uint64_t>(kCount);
    std::vector<std::uint64_t> local_ = std::vector<std::uint64_t>(kCount);
    ByteFold fold_{*reducer_for(DType::u64, ReduceOp::sum),
                   reinterpret_cast<std::byte*>(local_.data()),
                   reinterpret_cast<const std::byte*>(local_.data()), kCount, Side::right};
};

TEST_F(ByteFoldErrors, bytes_beyond_the_end_are_rejected) {
    const Bytes zeros(16);
    expect_refused(Errc::invalid_argument, 800, std::span(zeros).first(1));
    expect_refused(Errc::invalid_argument, 793, std::span(zeros).first(8));
    expect_refused(Errc::invalid_argument, UINT64_MAX, std::span(zeros).first(2));
    expect_refused(Errc::invalid_argument, 801, {});
    feed(800, 0);
    expect_completes_with({{0, 800}});
}

TEST_F(ByteFoldErrors, repeated_bytes_of_a_split_element_are_rejected) {
    feed(11, 3);  // bytes 3, 4 and 5 of element 1
    expect_refused(Errc::invalid_argument, 13, at(13, 1));
    expect_refused(Errc::invalid_argument, 8, at(8, 4));
    expect_refused(Errc::invalid_argument, 13, at(13, 50));  // the rest of the piece is not taken
    expect_refused(Errc::invalid_argument, 0, at(0, 12));    // nor the part before it
    expect_refused(Errc::invalid_argument, 0, at(0, 800));   // element 1 whole
    expect_completes_with({{14, 700}, {0, 11}, {714, 86}});
}

TEST_F(ByteFoldErrors, more_bytes_than_the_array_has_are_rejected) {
    feed(0, 400);
    feed(408, 392);
    expect_refused(Errc::invalid_argument, 0, at(0, 16));
    expect_completes_with({{400, 8}});
    expect_refused(Errc::invalid_argument, 0, at(0, 1));
}

TEST_F(ByteFoldErrors, more_split_elements_than_slots_are_rejected_and_nothing_is_lost) {
    std::vector<Piece> rest;
    for (std::size_t i = 0; i < ByteFold::kSlots; ++i) {
        feed(8 * i, 5);
        rest.push_back({8 * i + 5, 3});
    }
    const std::size_t next = 8 * ByteFold::kSlots;
    expect_refused(Errc::limit_exceeded, next, at(next, 5));
    expect_refused(Errc::limit_exceeded, next, at(next, 8 * 3 + 1));  // also after whole elements
    feed(next, 8);                                                    // whole elements need no slot
    feed(5, 3);  // completing an element frees its slot
    feed(next + 8, 5);
    rest.erase(rest.begin());
    rest.push_back({next + 13, 3});
    rest.push_back({next + 16, 800 - next - 16});
    expect_completes_with(rest);
}

TEST(ByteFold, an_empty_array_is_done_at_once) {
    ByteFold fold(*reducer_for(DType::f32, ReduceOp::sum), nullptr, nullptr, 0, Side::left);
    EXPECT_TRUE(fold.done());
    EXPECT_TRUE(fold.feed(0, {}));
}

}  // namespace
}  // namespace nexar::compute
