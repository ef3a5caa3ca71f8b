#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/result.hpp>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "link/shm/memory.hpp"
#include "port/shared_memory.hpp"

namespace nexar::shm {

/// Memory of this process that its peers can read.
class OwnShare final : public port::SharedMemory {
public:
    /// `bytes` must not be 0.
    static Result<std::shared_ptr<OwnShare>> make(std::size_t bytes);
    OwnShare(Descriptor memory, Mapping mapping, std::size_t used) noexcept
        : memory_(std::move(memory)), mapping_(std::move(mapping)), used_(used) {}

    port::Bytes bytes() noexcept override { return {mapping_.data(), used_}; }
    int descriptor() const noexcept { return memory_.number(); }
    std::size_t mapped_bytes() const noexcept { return mapping_.size(); }

private:
    Descriptor memory_;
    Mapping mapping_;
    std::size_t used_;
};

/// What is mapped of one peer's memory. Any thread may drop a PeerShare.
struct ShareBudget {
    std::atomic<std::size_t> pieces{0};
    std::atomic<std::uint64_t> bytes{0};
};

/// Memory of a peer. Counts against the peer's budget while it is mapped.
class PeerShare final : public port::PeerMemory {
public:
    PeerShare(Mapping mapping, std::size_t used, std::shared_ptr<ShareBudget> budget) noexcept;
    ~PeerShare() override;
    PeerShare(const PeerShare&) = delete;
    PeerShare& operator=(const PeerShare&) = delete;

    port::ConstBytes bytes() const noexcept override { return {mapping_.data(), used_}; }

private:
    Mapping mapping_;
    std::size_t used_;
    std::shared_ptr<ShareBudget> budget_;
};

/// The memory that was shared with one peer and still exists.
class SharesOut {
public:
    struct Use {
        std::size_t pieces = 0;
        std::uint64_t bytes = 0;
    };
    Use in_use();
    void add(const std::shared_ptr<OwnShare>& share);

private:
    std::vector<std::weak_ptr<OwnShare>> shares_;
};

}  // namespace nexar::shm
