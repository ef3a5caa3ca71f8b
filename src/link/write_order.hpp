#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "port/stream.hpp"

namespace nexar::link {

/// The classes of the writer: the lanes, then the priorities of payload streams, in the order in
/// which they are served.
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

/// Which class writes next: the first that has something, unless a lower one has waited so long
/// that it would get less than its floor, 5 % of what is written while it waits.
class WriteOrder {
public:
    static constexpr std::size_t kFloorDivisor = 20;  // 1/20 = 5 %
    /// A class is let through when this much is owed to it: a jumbo packet, so that one turn of a
    /// lower class is not a turn of dust.
    static constexpr std::size_t kQuantumBytes = std::size_t{8} * 1024;

    /// The class to write from, out of `ready`; none when that is empty.
    std::optional<WriteClass> next(ClassSet ready) const noexcept;

    /// `bytes` of `of` were written while the classes `ready` had something.
    void wrote(WriteClass of, std::size_t bytes, ClassSet ready) noexcept;

private:
    std::array<std::size_t, kWriteClasses> owed_{};  // bytes * kFloorDivisor
};

}  // namespace nexar::link
