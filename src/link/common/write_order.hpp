#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "port/stream.hpp"

namespace nexar::link {

/// The classes of the writer in the order in which it serves them: the lanes, then the priorities
/// of payload streams.
enum class WriteClass : std::uint8_t { control, rpc, eager, critical, realtime, bulk };
inline constexpr std::size_t kWriteClasses = port::kLanes + port::kPriorities;

constexpr WriteClass write_class(port::Lane lane) noexcept {
    return static_cast<WriteClass>(lane);
}
constexpr WriteClass write_class(port::Priority priority) noexcept {
    return static_cast<WriteClass>(port::kLanes + static_cast<std::size_t>(priority));
}

/// A set of classes, one bit each.
using ClassSet = std::uint8_t;
constexpr ClassSet bit(WriteClass of) noexcept {
    return static_cast<ClassSet>(1U << static_cast<unsigned>(of));
}

/// Decides which class writes next: the first one with pending bytes, unless a lower one would get
/// less than its floor, 5 % of the bytes written while it waits.
class WriteOrder {
public:
    static constexpr std::size_t kFloorDivisor = 20;  // 1/20 = 5 %
    /// A lower class gets a turn when this much is owed to it: a jumbo packet, so that its turns
    /// are not tiny.
    static constexpr std::size_t kQuantumBytes = std::size_t{8} * 1024;

    /// The class of `ready` to write from; nullopt when `ready` is empty.
    std::optional<WriteClass> next(ClassSet ready) const noexcept;

    /// Notes that `bytes` of class `of` were written while the classes `ready` had pending bytes.
    void wrote(WriteClass of, std::size_t bytes, ClassSet ready) noexcept;

private:
    std::array<std::size_t, kWriteClasses> owed_{};  // bytes * kFloorDivisor
};

}  // namespace nexar::link
