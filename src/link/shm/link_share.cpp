#include <fmt/format.h>

#include <memory>
#include <utility>

#include "link/shm/carrier.hpp"
#include "link/shm/link.hpp"

// Further memory that one side writes and the other one reads in place. Its descriptor travels over
// the socket; a record in the ring makes a peer that polls look there.
namespace nexar::shm {

namespace {
// The owner counts what it still has; the peer may keep a piece longer than its owner.
constexpr std::uint64_t kKeptLonger = 4;
}  // namespace

Result<void> Link::share(std::uint64_t name, const std::shared_ptr<port::SharedMemory>& memory) {
    if (!is_up()) return {};
    const auto own = std::dynamic_pointer_cast<OwnShare>(memory);
    if (own == nullptr) {
        return Error(Errc::invalid_argument,
                     "only memory that this carrier allocated can be shared over its links");
    }
    const SharesOut::Use use = shares_out_.in_use();
    if (use.pieces >= options_->max_shares ||
        use.bytes + own->mapped_bytes() > options_->max_shared_bytes) {
        return Error(Errc::too_many_pending,
                     fmt::format("this node already shares {} pieces of memory with {} bytes with "
                                 "the peer; free some of them first",
                                 use.pieces, use.bytes));
    }
    const ShareNote note{.name = name, .bytes = own->mapped_bytes(), .used = own->bytes().size()};
    switch (send_message(socket_.number(), note.encoded(), own->descriptor())) {
        case Sent::sent:
            break;
        case Sent::full:
            return Error(Errc::too_many_pending,
                         "the peer has not taken the memory that was shared before; try again");
        case Sent::closed:
            return {};  // Down follows
    }
    shares_out_.add(own);
    look_due_ = true;
    touch();
    return {};
}

void Link::take_share(Message& message) {
    const auto note = ShareNote::decode(message.content());
    if (!note || message.truncated || message.descriptor_count != 1) {
        violated("sent a message over the socket that is not valid");
        return;
    }
    const bool fits = shares_in_->pieces < kKeptLonger * options_->max_shares &&
                      note->bytes <= options_->max_shared_bytes &&
                      shares_in_->bytes + note->bytes <= kKeptLonger * options_->max_shared_bytes;
    if (!fits || note->bytes == 0 || note->used == 0 || note->used > note->bytes ||
        note->bytes % page_bytes() != 0) {
        violated("shares more memory than allowed");
        return;
    }
    const Descriptor& memory = message.descriptors.front();
    const auto bytes = static_cast<std::size_t>(note->bytes);
    if (const auto checked = check_sealed(memory.number(), note->bytes); !checked) {
        failure_ = checked.error();
        return;
    }
    auto mapping = map_memory(memory.number(), bytes, false);
    if (!mapping) {
        failure_ = mapping.error();
        return;
    }
    emit(port::Shared{.name = note->name,
                      .memory = std::make_shared<PeerShare>(
                          std::move(*mapping), static_cast<std::size_t>(note->used), shares_in_)});
}

}  // namespace nexar::shm
