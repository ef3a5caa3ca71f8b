#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace nexar::bench {

/// The memory of bulk messages, the same for every contender: one buffer per message in flight.
class MessageRing {
public:
    static constexpr std::size_t kMessageBytes = std::size_t{16} << 20;
    static constexpr std::size_t kSlots = 2;

    MessageRing();

    std::span<std::byte> operator[](std::size_t slot) const noexcept {
        return {memory_[slot].get(), kMessageBytes};
    }

    /// Gives every slot its own content without repetitions.
    void fill();

    void clear();

    /// Throws Errc::malformed unless each slot holds the content that fill() gave to any of them:
    /// the transport chooses which message arrives last in a slot.
    void check() const;

private:
    static constexpr std::align_val_t kPage{4096};
    struct Free {
        void operator()(std::byte* memory) const { ::operator delete[](memory, kPage); }
    };
    std::array<std::unique_ptr<std::byte[], Free>, kSlots> memory_;
};

}  // namespace nexar::bench
