#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace nexar::link {

/// Decides whether a link writes its own traffic next or what it forwards for others, so that each
/// gets at least half of the bytes while both wait, and all of them while only one does.
class EvenShare {
public:
    /// How far one side may be behind the other. It is not more, so that a side that could not
    /// write for a while does not keep the other waiting for long afterwards.
    static constexpr std::int64_t kMostLead = std::int64_t{64} * 1024;

    /// While both wait: whether it is the turn of the forwarded traffic. The link's own begins.
    bool forwarded_next() const noexcept { return lead_ < 0; }

    // Notes what was written while both waited.
    void wrote_own(std::size_t bytes) noexcept {
        lead_ = std::max(lead_ - static_cast<std::int64_t>(bytes), -kMostLead);
    }
    void wrote_forwarded(std::size_t bytes) noexcept {
        lead_ = std::min(lead_ + static_cast<std::int64_t>(bytes), kMostLead);
    }

    /// Something was written while the other side had nothing to write.
    void wrote_alone() noexcept { lead_ = 0; }

private:
    std::int64_t lead_ = 0;  // bytes by which the forwarded traffic is ahead
};

}  // namespace nexar::link
