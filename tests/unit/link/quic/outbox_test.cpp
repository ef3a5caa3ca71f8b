#include "link/quic/outbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"

namespace nexar::quic {
namespace {

using nexar::sim::DatagramNet;
using nexar::testing::pattern;

struct Sent {
    Path path;
    std::vector<std::byte> bytes;
    std::size_t segment = 0;
    std::uint8_t ecn = 0;
};

class FakePath final : public PacketPath {
public:
    Sent send(const PacketBatch& batch) override {
        if (blocked) return Sent::blocked;
        batches.push_back({.path = batch.path,
                           .bytes = {batch.bytes.begin(), batch.bytes.end()},
                           .segment = batch.segment_bytes,
                           .ecn = batch.ecn});
        return Sent::done;
    }
    std::size_t largest_datagram(const Address& /*remote*/) override { return 65'000; }

    std::vector<nexar::quic::Sent> batches;
    bool blocked = false;
};

class OutboxTest : public ::testing::Test {
protected:
    static Path to(unsigned host) {
        return {.local = DatagramNet::address(1), .remote = DatagramNet::address(host)};
    }
    void add(std::size_t bytes, unsigned host = 2, std::uint8_t ecn = 0, bool alone = false) {
        ASSERT_TRUE(outbox_.has_room());
        const auto packet = pattern(next_++, bytes);
        std::ranges::copy(packet, outbox_.room().begin());
        outbox_.add(to(host), ecn, bytes, alone);
        packets_.push_back(packet);
    }
    /// Everything that was sent, packet by packet.
    std::vector<std::vector<std::byte>> arrived() const {
        std::vector<std::vector<std::byte>> all;
        for (const auto& batch : path_.batches) {
            for (std::size_t at = 0; at < batch.bytes.size(); at += batch.segment) {
                const std::size_t end = std::min(at + batch.segment, batch.bytes.size());
                all.emplace_back(batch.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                 batch.bytes.begin() + static_cast<std::ptrdiff_t>(end));
            }
        }
        return all;
    }

    FakePath path_;
    Outbox outbox_{path_};
    std::uint64_t next_ = 1;
    std::vector<std::vector<std::byte>> packets_;
};

TEST_F(OutboxTest, packets_of_one_size_share_a_batch_and_a_shorter_one_ends_it) {
    for (int i = 0; i < 5; ++i) add(1200);
    add(700);
    add(700);
    outbox_.flush();
    ASSERT_EQ(path_.batches.size(), 2U);
    EXPECT_EQ(path_.batches[0].segment, 1200U);
    EXPECT_EQ(path_.batches[0].bytes.size(), 5U * 1200 + 700);
    EXPECT_EQ(path_.batches[1].bytes.size(), 700U);
    EXPECT_TRUE(arrived() == packets_);
}

TEST_F(OutboxTest, a_longer_packet_another_path_or_another_mark_begins_a_batch) {
    add(1200);
    add(1300);
    add(1300, 3);
    add(1300, 3, 2);
    outbox_.flush();
    ASSERT_EQ(path_.batches.size(), 4U);
    EXPECT_EQ(path_.batches[2].path, to(3));
    EXPECT_EQ(path_.batches[2].ecn, 0);
    EXPECT_EQ(path_.batches[3].ecn, 2);
    EXPECT_TRUE(arrived() == packets_);
}

TEST_F(OutboxTest, a_packet_that_may_be_refused_goes_alone) {
    add(1200);
    add(1200, 2, 0, true);
    add(1200);
    add(1200);
    outbox_.flush();
    ASSERT_EQ(path_.batches.size(), 3U);
    EXPECT_EQ(path_.batches[0].bytes.size(), 1200U);
    EXPECT_EQ(path_.batches[1].bytes.size(), 1200U);
    EXPECT_EQ(path_.batches[2].bytes.size(), 2400U);
}

TEST_F(OutboxTest, a_batch_has_at_most_64_packets_and_65487_bytes) {
    for (int i = 0; i < 300; ++i) add(100);
    for (int i = 0; i < 100; ++i) add(1452);
    for (int i = 0; i < 10; ++i) add(65'000);
    outbox_.flush();
    for (const auto& batch : path_.batches) {
        EXPECT_LE((batch.bytes.size() + batch.segment - 1) / batch.segment, 64U);
        EXPECT_LE(batch.bytes.size(), 65'487U);
    }
    EXPECT_TRUE(arrived() == packets_);
    EXPECT_EQ(Outbox::batch_packets(100), 64U);
    EXPECT_EQ(Outbox::batch_packets(1452), 45U);
    EXPECT_EQ(Outbox::batch_packets(65'000), 1U);
}

TEST_F(OutboxTest, a_blocked_path_loses_nothing_and_mixes_nothing) {
    Random random(test_seed(12));
    for (int i = 0; i < 20'000; ++i) {
        path_.blocked = random.chance(0.4);
        if (random.chance(0.1)) outbox_.flush();
        if (!outbox_.has_room()) {
            EXPECT_TRUE(outbox_.blocked());
            outbox_.flush();
            continue;
        }
        const std::size_t bytes = random.chance(0.02) ? 65'000 : 1 + random.below(1500);
        add(random.chance(0.7) ? 1200 : bytes, 2 + static_cast<unsigned>(random.below(2)),
            random.chance(0.1) ? 2 : 0, random.chance(0.02));
    }
    path_.blocked = false;
    outbox_.flush();
    outbox_.flush();
    EXPECT_FALSE(outbox_.blocked());
    ASSERT_EQ(arrived().size(), packets_.size());
    EXPECT_TRUE(arrived() == packets_) << "every packet arrives once and in order";
}

}  // namespace
}  // namespace nexar::quic
