#include "engine/lane_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "support/link_end.hpp"
#include "support/said.hpp"
#include "support/seed.hpp"

namespace nexar::engine {
namespace {

using nexar::testing::operator+;
using nexar::testing::pattern;
using nexar::testing::said;
using Bytes = nexar::testing::Bytes;
using ::testing::HasSubstr;

/// Records every frame and receives the payload behind it.
class Kept final : public LaneReader::Taker, public PayloadReceiver {
public:
    Result<LanePayload> frame(const wire::FrameHeader& header, port::ConstBytes body) override {
        types.push_back(header.type);
        bodies.emplace_back(body.begin(), body.end());
        payloads.emplace_back();
        if (refuses) return Error(Errc::protocol_violation, "not that one");
        if (header.type != wire::FrameType::eager) return LanePayload{};
        const auto size = wire::decode_body<wire::EagerHeader>(header, body).value().message.size;
        return LanePayload{.bytes = size, .receiver = wants ? this : nullptr};
    }
    void violated(const Error& error) override {
        EXPECT_FALSE(violation) << "violated() is called once";
        violation = error;
    }

    std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept override {
        EXPECT_EQ(offset, payloads.back().size());
        payloads.back().insert(payloads.back().end(), from.begin(), from.end());
        came += from.size();
        if (skipped_by != nullptr) skipped_by->skip(*this);
        return from.size();
    }
    void attached() override { ADD_FAILURE() << "a lane is not a stream"; }
    void finished(std::uint64_t size) override {
        EXPECT_EQ(size, payloads.back().size());
        ++finished_payloads;
    }
    void aborted() override { ADD_FAILURE() << "a lane is not a stream"; }

    std::vector<wire::FrameType> types{};
    std::vector<Bytes> bodies{};
    std::vector<Bytes> payloads{};  // behind each frame
    std::optional<Error> violation{};
    std::size_t came = 0;
    int finished_payloads = 0;
    bool wants = true;
    bool refuses = false;
    LaneReader* skipped_by = nullptr;
};

Bytes preamble(wire::Lane lane) {
    return said(wire::Preamble{.lane = lane});
}

Bytes eager(std::uint64_t tag, std::size_t bytes) {
    wire::EagerHeader header;
    header.tag = Tag(tag);
    header.size = bytes;
    return said(header) + pattern(tag, bytes);
}

/// Three eager messages and a bulk header, whose payload is not on the lane.
Bytes eager_lane() {
    return preamble(wire::Lane::eager) + eager(1, 100) + eager(2, 0) +
           said(wire::BulkHeader{{.size = 5}}) + eager(3, 7);
}

void expect_eager_lane(const Kept& kept) {
    ASSERT_FALSE(kept.violation) << kept.violation->what();
    using enum wire::FrameType;
    ASSERT_EQ(kept.types, (std::vector{eager, eager, bulk, eager}));
    EXPECT_EQ(kept.payloads[0], pattern(1, 100));
    EXPECT_TRUE(kept.payloads[1].empty());
    EXPECT_TRUE(kept.payloads[2].empty());
    EXPECT_EQ(kept.payloads[3], pattern(3, 7));
    EXPECT_EQ(kept.came, 107U);
    EXPECT_EQ(kept.finished_payloads, 2);
    EXPECT_EQ(kept.bodies[2].size(), wire::kMessageHeaderFrameBytes - wire::kFrameHeaderBytes);
}

/// Feeds all bytes to the reader in pieces; `next` returns the size of each.
template <class Next>
void feed(LaneReader& reader, std::span<const std::byte> bytes, Next next) {
    std::uint64_t offset = 0;
    while (!bytes.empty()) {
        const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), next()));
        ASSERT_EQ(reader.write(offset, piece), piece.size()) << "a lane accepts every byte at once";
        offset += piece.size();
        bytes = bytes.subspan(piece.size());
    }
}

TEST(LaneReader, reads_a_lane_split_at_any_byte) {
    const Bytes lane = eager_lane();
    for (std::size_t cut = 0; cut <= lane.size(); ++cut) {
        SCOPED_TRACE(cut);
        Kept kept;
        LaneReader reader(wire::Lane::eager, kept);
        const auto bytes = std::span<const std::byte>(lane);
        reader.write(0, bytes.first(cut));
        reader.write(cut, bytes.subspan(cut));
        expect_eager_lane(kept);
    }
}

TEST(LaneReader, reads_a_lane_in_pieces_of_any_size) {
    const Bytes lane = eager_lane();
    for (std::size_t size = 1; size <= lane.size(); ++size) {
        SCOPED_TRACE(size);
        Kept kept;
        LaneReader reader(wire::Lane::eager, kept);
        feed(reader, lane, [&] { return size; });
        expect_eager_lane(kept);
    }
}

TEST(LaneReader, reads_a_lane_in_pieces_of_random_sizes) {
    Random random(test_seed(3));
    const Bytes lane = eager_lane();
    for (int round = 0; round < 200; ++round) {
        Kept kept;
        LaneReader reader(wire::Lane::eager, kept);
        feed(reader, lane, [&] { return 1 + random.below(60); });
        expect_eager_lane(kept);
    }
}

TEST(LaneReader, drops_a_payload_without_a_receiver) {
    Kept kept;
    kept.wants = false;
    LaneReader reader(wire::Lane::eager, kept);
    feed(reader, eager_lane(), [] { return 11; });
    EXPECT_FALSE(kept.violation);
    EXPECT_EQ(kept.types.size(), 4U);
    EXPECT_EQ(kept.came, 0U);
    EXPECT_EQ(kept.finished_payloads, 0);
}

TEST(LaneReader, drops_the_rest_of_a_skipped_payload) {
    Kept kept;
    LaneReader reader(wire::Lane::eager, kept);
    kept.skipped_by = &reader;
    feed(reader, eager_lane(), [] { return 5; });
    EXPECT_FALSE(kept.violation);
    EXPECT_EQ(kept.types.size(), 4U) << "the reader still delivers the frames behind it";
    EXPECT_GT(kept.came, 0U);
    EXPECT_LE(kept.came, 10U) << "the first piece of each payload";
    EXPECT_EQ(kept.finished_payloads, 0);
}

TEST(LaneReader, offers_no_memory) {
    Kept kept;
    LaneReader reader(wire::Lane::eager, kept);
    EXPECT_TRUE(reader.region(0, 100).empty());
}

/// The violation that a control lane reports for these bytes, whether fed at once or one at a time.
Error violation_of(const Bytes& bytes, std::size_t frames_before) {
    std::optional<Error> first;
    for (const std::size_t size : {bytes.size(), std::size_t{1}}) {
        Kept kept;
        LaneReader reader(wire::Lane::control, kept);
        feed(reader, bytes, [&] { return size; });
        EXPECT_TRUE(kept.violation) << "pieces of " << size;
        EXPECT_EQ(kept.types.size(), frames_before) << "pieces of " << size;
        // The reader ignores everything behind it.
        feed(reader, said(wire::Credit{.headers = 1}), [] { return 5; });
        EXPECT_EQ(kept.types.size(), frames_before);
        first = first.value_or(kept.violation.value_or(Error(Errc::closed, "")));
        EXPECT_EQ(first->code(), kept.violation->code());
    }
    return *first;
}

Bytes control() {
    return preamble(wire::Lane::control);
}

TEST(LaneReader, refuses_the_preamble_of_another_lane) {
    const Error error = violation_of(preamble(wire::Lane::eager), 0);
    EXPECT_EQ(error.code(), Errc::protocol_violation);
    EXPECT_THAT(error.cause(),
                HasSubstr("began the control lane with the preamble of the eager lane"));
}

TEST(LaneReader, refuses_the_preamble_of_a_payload_stream) {
    const Error error = violation_of(nexar::testing::stream_of(ContextId(1), 2), 0);
    EXPECT_EQ(error.code(), Errc::protocol_violation);
}

TEST(LaneReader, refuses_bytes_that_are_not_a_preamble) {
    EXPECT_EQ(violation_of(pattern(1, 8), 0).code(), Errc::malformed);
}

TEST(LaneReader, refuses_a_frame_that_belongs_to_another_lane) {
    const Error error = violation_of(control() + said(wire::Credit{.headers = 1}) + eager(1, 3), 1);
    EXPECT_EQ(error.code(), Errc::protocol_violation);
    EXPECT_THAT(error.cause(),
                HasSubstr("the peer sent a frame of type eager on the control lane"));
}

TEST(LaneReader, refuses_a_frame_of_unknown_type) {
    const Bytes unknown{std::byte{1}, std::byte{77}, {}, {}, {}, {}, {}, {}};
    EXPECT_EQ(violation_of(control() + unknown, 0).code(), Errc::unsupported);
}

TEST(LaneReader, refuses_an_oversized_frame_before_its_body_arrives) {
    // A credit frame of 249 bytes.
    const Bytes large{std::byte{1}, std::byte{5}, {}, {}, std::byte{249}, {}, {}, {}};
    EXPECT_EQ(violation_of(control() + large, 0).code(), Errc::limit_exceeded);
}

TEST(LaneReader, ignores_everything_after_a_refused_frame) {
    Kept kept;
    kept.refuses = true;
    LaneReader reader(wire::Lane::control, kept);
    const Bytes credit = said(wire::Credit{.headers = 1});
    const Bytes lane = control() + credit + credit;
    EXPECT_EQ(reader.write(0, lane), lane.size());
    EXPECT_EQ(kept.types.size(), 1U);
    ASSERT_TRUE(kept.violation);
    EXPECT_EQ(kept.violation->cause(), "not that one");
}

}  // namespace
}  // namespace nexar::engine
