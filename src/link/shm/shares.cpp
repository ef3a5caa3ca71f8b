#include "link/shm/shares.hpp"

#include "base/try.hpp"

namespace nexar::shm {

Result<std::shared_ptr<OwnShare>> OwnShare::make(std::size_t bytes) {
    const std::size_t whole = whole_pages(bytes);
    NEXAR_TRY_VALUE(memory, make_memory(whole));
    NEXAR_TRY_VALUE(mapping, map_memory(memory.number(), whole, true));
    NEXAR_TRY(seal(memory.number()));
    return std::make_shared<OwnShare>(std::move(memory), std::move(mapping), bytes);
}

PeerShare::PeerShare(Mapping mapping, std::size_t used,
                     std::shared_ptr<ShareBudget> budget) noexcept
    : mapping_(std::move(mapping)), used_(used), budget_(std::move(budget)) {
    budget_->pieces += 1;
    budget_->bytes += mapping_.size();
}

PeerShare::~PeerShare() {
    budget_->pieces -= 1;
    budget_->bytes -= mapping_.size();
}

SharesOut::Use SharesOut::in_use() {
    std::erase_if(shares_, [](const std::weak_ptr<OwnShare>& share) { return share.expired(); });
    Use use;
    for (const auto& each : shares_) {
        const auto share = each.lock();
        if (share == nullptr) continue;
        use.pieces += 1;
        use.bytes += share->mapped_bytes();
    }
    return use;
}

void SharesOut::add(const std::shared_ptr<OwnShare>& share) {
    shares_.push_back(share);
}

}  // namespace nexar::shm
