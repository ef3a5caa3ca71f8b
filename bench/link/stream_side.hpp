#pragma once

#include <memory>
#include <vector>

#include "byte_stream.hpp"
#include "message_ring.hpp"
#include "side.hpp"

namespace nexar::bench {

/// One end of a byte stream, on which messages follow each other.
class StreamSide final : public Side {
public:
    /// `ring` must outlive it.
    StreamSide(std::unique_ptr<ByteStream> stream, MessageRing& ring)
        : stream_(std::move(stream)), ring_(&ring) {}

    void send(std::size_t messages) override;
    void receive(std::size_t messages) override;
    void settle() override {}  // the kernel sends the acknowledgements
    std::vector<double> ping(const PingPlan& plan) override;
    void echo(std::size_t bytes) override;
    void leave() override { stream_.reset(); }
    void stay() override;
    SideNotes notes() override { return {}; }

private:
    /// The most bytes that one call reads or writes.
    static constexpr std::size_t kCallBytes = std::size_t{256} << 10;

    void read_all(std::span<std::byte> out);

    std::unique_ptr<ByteStream> stream_;
    MessageRing* ring_;
};

}  // namespace nexar::bench
