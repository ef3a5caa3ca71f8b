#include "support/link_end.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "link/quic/connection.hpp"

namespace nexar::testing {

std::size_t CollectingSink::write(std::uint64_t offset, port::ConstBytes piece) noexcept {
    NEXAR_ASSERT(offset == bytes.size(), "bytes of a stream must arrive in order, each once");
    if (on_write) on_write();
    const std::uint64_t room = allowance - std::min<std::uint64_t>(allowance, bytes.size());
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(room, piece.size()));
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
    return taken;
}

std::size_t AskedSource::fill(std::uint64_t offset, port::Bytes out) noexcept {
    NEXAR_ASSERT(offset == asked, "each byte of a source must be requested once, in order");
    const std::uint64_t end = std::min<std::uint64_t>(content_.size(), available);
    const auto taken =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), end - std::min(end, offset)));
    std::copy_n(content_.begin() + static_cast<std::ptrdiff_t>(offset), taken, out.begin());
    asked += taken;
    return taken;
}

port::StreamId LinkEnd::send(std::span<const std::byte> content, const port::StreamOptions& options,
                             std::size_t regions) {
    Outgoing outgoing;
    outgoing.content.assign(content.begin(), content.end());
    const port::ConstBytes all(outgoing.content);
    for (std::size_t i = 0; i < regions; ++i) {
        const std::size_t begin = all.size() * i / regions;
        const std::size_t end = all.size() * (i + 1) / regions;
        outgoing.regions.push_back(all.subspan(begin, end - begin));
    }
    outgoing.source = std::make_unique<port::MemorySource>(outgoing.regions);
    const port::StreamId stream = link_->send(*outgoing.source, options);
    NEXAR_ASSERT(outgoing_.emplace(stream.value(), std::move(outgoing)).second);
    return stream;
}

port::StreamId LinkEnd::send_from(port::Source& source, const port::StreamOptions& options) {
    const port::StreamId stream = link_->send(source, options);
    NEXAR_ASSERT(outgoing_.try_emplace(stream.value()).second);
    return stream;
}

void LinkEnd::receive(port::StreamId stream) {
    Incoming& in = incoming(stream);
    in.in_sink = true;
    link_->receive(stream, in.sink);
    link_->open_window(stream);
}

bool LinkEnd::write(port::Lane lane, std::span<const std::byte> bytes) {
    const std::array<port::ConstBytes, 1> pieces{bytes};
    return link_->write(lane, pieces);
}

std::optional<port::SendOutcome> LinkEnd::outcome(port::StreamId stream) const {
    return outgoing_.at(stream.value()).outcome;
}

bool LinkEnd::all_released() const noexcept {
    return released_ == outgoing_.size();
}

void LinkEnd::on_released(const port::Released& released) {
    Outgoing& outgoing = outgoing_.at(released.stream.value());
    NEXAR_ASSERT(!outgoing.outcome, "a send must be released only once");
    outgoing.outcome = released.outcome;
    ++released_;
    std::ranges::fill(outgoing.content, std::byte{0xee});
    outgoing.content = {};
    outgoing.regions = {};
    outgoing.source.reset();
}

void LinkEnd::handle(port::LinkEvent& event) {
    NEXAR_ASSERT(!down_, "Down must be the last event of a link");
    if (auto* up = std::get_if<port::Up>(&event.what)) {
        NEXAR_ASSERT(!was_up_);
        was_up_ = true;
        link_ = up->link;
        dialed_ = up->dialed;
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            link_->receive(static_cast<port::Lane>(i), lanes_[i]);
        }
        return;
    }
    if (auto* down = std::get_if<port::Down>(&event.what)) {
        NEXAR_ASSERT(all_released(), "every send must be released before Down");
        down_ = down->reason;
        rests_ = std::move(down->rests);
        untaken = std::move(down->untaken);
        unconfirmed = std::move(down->unconfirmed);
        link_ = nullptr;
        return;
    }
    NEXAR_ASSERT(was_up_, "Up must be the first event of a link");
    if (auto* released = std::get_if<port::Released>(&event.what)) {
        on_released(*released);
    } else if (auto* opened = std::get_if<port::Opened>(&event.what)) {
        NEXAR_ASSERT(incoming_.try_emplace(opened->stream.value()).second);
        opened_.push_back(opened->stream);
        if (on_opened) {
            on_opened(*this, opened->stream);
        } else {
            receive(opened->stream);
        }
    } else if (auto* finished = std::get_if<port::Finished>(&event.what)) {
        Incoming& in = incoming(finished->stream);
        NEXAR_ASSERT(!in.finished && !in.aborted);
        NEXAR_ASSERT(!in.in_sink || finished->bytes == in.sink.bytes.size());
        in.finished = true;
        in.size = finished->bytes;
        ++finished_;
    } else if (auto* aborted = std::get_if<port::Aborted>(&event.what)) {
        Incoming& in = incoming(aborted->stream);
        NEXAR_ASSERT(!in.finished && !in.aborted);
        in.aborted = true;
        ++aborted_;
    } else if (auto* datagram = std::get_if<port::DatagramArrived>(&event.what)) {
        datagrams.push_back(std::move(datagram->bytes));
    } else if (std::holds_alternative<port::Writable>(event.what)) {
        ++writable;
    } else if (std::holds_alternative<port::PeerRefused>(event.what)) {
        ++refusals;
    } else if (const auto* stalled = std::get_if<port::Stalled>(&event.what)) {
        stalls.push_back(stalled->stalled);
    } else if (const auto* changed = std::get_if<port::PathChanged>(&event.what)) {
        paths.push_back(changed->remote);
    } else if (const auto* failed = std::get_if<port::PathFailed>(&event.what)) {
        failed_paths.push_back(failed->remote);
    }
}

quic::Connection& LinkEnd::connection() noexcept {
    return dynamic_cast<quic::Connection&>(*link_);
}

CarrierSide::CarrierSide(sim::NodeCarrier& carrier)
    : carrier_(&carrier), loop_(carrier, [this](TimePoint /*now*/, port::LinkEvent event) {
          handle(std::move(event));
      }) {}

LinkEnd& CarrierSide::dialed(port::LinkId link) {
    return *ends_.emplace(link.value(), std::make_unique<LinkEnd>()).first->second;
}

void CarrierSide::handle(port::LinkEvent event) {
    if (auto* refused = std::get_if<port::Refused>(&event.what)) {
        NEXAR_ASSERT(!ends_.contains(event.link.value()));
        refused_.push_back(std::move(*refused));
        return;
    }
    auto found = ends_.find(event.link.value());
    const bool fresh = found == ends_.end();
    if (fresh) {
        NEXAR_ASSERT(std::holds_alternative<port::Up>(event.what));
        found = ends_.emplace(event.link.value(), std::make_unique<LinkEnd>()).first;
    }
    LinkEnd& end = *found->second;
    end.handle(event);
    if (end.down()) carrier_->forget(event.link);
    if (!fresh) return;
    accepted_.push_back(&end);
    if (on_accepted) on_accepted(end);
}

std::vector<std::byte> pattern(std::uint64_t seed, std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    SplitMix64 numbers(seed);
    for (std::size_t i = 0; i < bytes; i += 8) {
        const std::uint64_t word = numbers.next();
        std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, bytes - i));
    }
    return out;
}

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace nexar::testing
