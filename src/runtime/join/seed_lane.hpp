#pragma once

#include <array>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "engine/lane_reader.hpp"
#include "port/link.hpp"
#include "wire/codec.hpp"
#include "wire/preamble.hpp"

namespace nexar::runtime {

/// Binds a signing request, and the proofs of a job's secret, to one link.
inline constexpr std::string_view kBindingLabel = "EXPORTER-nexar-join-1";
inline constexpr std::size_t kBindingBytes = 32;

inline Result<std::array<std::byte, kBindingBytes>> binding(const port::Link& link) {
    std::array<std::byte, kBindingBytes> bytes{};
    if (auto exported = link.export_key(kBindingLabel, bytes); !exported) return exported.error();
    return bytes;
}

/// The seed lane of one link: frames in, frames out. It uses the link's control lane.
class SeedLane final : private engine::LaneReader::Taker {
public:
    /// Handles one frame; if it returns an Error, the link is closed with the Error's text.
    using Take = std::function<Result<void>(const wire::FrameHeader&, port::ConstBytes)>;

    /// `link` must outlive its use here.
    SeedLane(port::Link& link, Take take)
        : link_(&link), take_(std::move(take)), reader_(wire::Lane::seed, *this) {
        // A new lane has room, unless the link has ended and its Down follows.
        write(wire::to_bytes(wire::Preamble{.lane = wire::Lane::seed}));
        link.receive(port::Lane::control, reader_);
    }
    SeedLane(const SeedLane&) = delete;
    SeedLane& operator=(const SeedLane&) = delete;

    /// Returns false if it closed the link because the peer does not read.
    template <class Message>
    bool send(const Message& message) {
        if (write(wire::to_bytes(message))) return true;
        close("you do not read the frames that are sent to you");
        return false;
    }

    void close(std::string_view why) {
        if (std::exchange(closed_, true)) return;
        link_->close(why);
    }
    bool closed() const noexcept { return closed_; }
    port::Link& link() noexcept { return *link_; }

private:
    bool write(std::span<const std::byte> bytes) {
        const port::ConstBytes piece(bytes);
        return link_->write(port::Lane::control, {&piece, 1});
    }

    Result<engine::LanePayload> frame(const wire::FrameHeader& header,
                                      port::ConstBytes body) override {
        if (closed_) return engine::LanePayload{};
        if (auto taken = take_(header, body); !taken) return taken.error();
        return engine::LanePayload{};
    }
    void violated(const Error& error) override { close(error.cause()); }

    port::Link* link_;
    Take take_;
    engine::LaneReader reader_;
    bool closed_ = false;
};

}  // namespace nexar::runtime
