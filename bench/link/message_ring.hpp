#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace nexar::bench {

/// The memory that bulk messages come from or go to, the same for every contender: as many buffers
/// as messages are on the way at once.
class MessageRing {
public:
    static constexpr std::size_t kMessageBytes = std::size_t{16} << 20;
    static constexpr std::size_t kSlots = 2;

    MessageRing();

    std::span<std::byte> operator[](std::size_t slot) const noexcept {
        return {memory_[slot].get(), kMessageBytes};
    }

    /// Gives every slot content of its own that repeats nowhere.
    void fill();

    void clear();

    /// Throws Errc::malformed unless each slot holds what fill() gave one of them: which message
    /// came last to a slot is for the transport to choose.
    void check() const;

private:
    static constexpr std::align_val_t kPage{4096};
    struct Free {
        void operator()(std::byte* memory) const { ::operator delete[](memory, kPage); }
    };
    std::array<std::unique_ptr<std::byte[], Free>, kSlots> memory_;
};

}  // namespace nexar::bench
