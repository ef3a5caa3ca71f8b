#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "port/stream.hpp"

namespace nexar::port {

/// Host memory as a source: a list of regions, read in order. The caller owns the list and the
/// memory.
class MemorySource final : public Source {
public:
    explicit MemorySource(std::span<const ConstBytes> regions) noexcept : regions_(regions) {
        for (const ConstBytes region : regions_) size_ += region.size();
    }

    std::uint64_t size() const noexcept override { return size_; }
    std::span<const ConstBytes> regions() const noexcept override { return regions_; }
    std::size_t fill(std::uint64_t /*offset*/, Bytes /*out*/) noexcept override { return 0; }

private:
    std::span<const ConstBytes> regions_;
    std::uint64_t size_ = 0;
};

/// Host memory as a sink. It takes no more bytes than fit; the rest stays pending.
class MemorySink final : public Sink {
public:
    explicit MemorySink(Bytes memory) noexcept : memory_(memory) {}

    std::size_t write(std::uint64_t offset, ConstBytes bytes) noexcept override {
        const Bytes place = region(offset, bytes.size());
        std::memcpy(place.data(), bytes.data(), place.size());
        taken_ = offset + place.size();
        return place.size();
    }

    Bytes region(std::uint64_t offset, std::size_t bytes) noexcept override {
        if (offset >= memory_.size()) return {};
        const auto at = static_cast<std::size_t>(offset);
        return memory_.subspan(at, std::min(bytes, memory_.size() - at));
    }

    std::uint64_t taken() const noexcept { return taken_; }

private:
    Bytes memory_;
    std::uint64_t taken_ = 0;
};

}  // namespace nexar::port
