// The loops that every SIMD kernel shares. Compiled once per instruction set: include it after
// hwy/foreach_target.h, from a file that is itself HWY_TARGET_INCLUDE. The guard below toggles, as
// Highway prescribes.

#if defined(NEXAR_COMPUTE_LOOP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NEXAR_COMPUTE_LOOP_INL
#undef NEXAR_COMPUTE_LOOP_INL
#else
#define NEXAR_COMPUTE_LOOP_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace nexar::compute::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Loads and stores access bytes, which is valid at any alignment and for any type of object.
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const std::byte* p) {
#if HWY_TARGET == HWY_SCALAR
    hn::TFromD<D> lane;
    std::memcpy(&lane, p, sizeof(lane));
    return hn::Set(d, lane);
#else
    const hn::Repartition<std::uint8_t, D> bytes;
    return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(p)));
#endif
}

template <class D>
HWY_INLINE void store(D /*d*/, hn::VFromD<D> v, std::byte* p) {
#if HWY_TARGET == HWY_SCALAR
    const hn::TFromD<D> lane = hn::GetLane(v);
    std::memcpy(p, &lane, sizeof(lane));
#else
    const hn::Repartition<std::uint8_t, D> bytes;
    hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<std::uint8_t*>(p));
#endif
}

template <class D>
HWY_INLINE std::size_t vector_bytes(D d) {
    return hn::Lanes(d) * sizeof(hn::TFromD<D>);
}

#undef NEXAR_MASKED_TAIL
#if HWY_TARGET == HWY_SCALAR || HWY_MEM_OPS_MIGHT_FAULT
#define NEXAR_MASKED_TAIL 0
#else
#define NEXAR_MASKED_TAIL 1
#endif

/// The end of a range, shorter than a vector. Uses the same vector code as the body and therefore
/// gives the same bits. Bytes beyond the end are neither read nor written, thanks to masks if the
/// target has them, otherwise to padded copies.
template <class D>
class Tail {
public:
    explicit HWY_INLINE Tail(std::size_t bytes) : bytes_(bytes) {}

#if NEXAR_MASKED_TAIL
    HWY_INLINE hn::VFromD<D> load(const std::byte* p) const {
        const ByteTag d;
        return hn::BitCast(D(), hn::MaskedLoad(hn::FirstN(d, bytes_), d,
                                               reinterpret_cast<const std::uint8_t*>(p)));
    }
    HWY_INLINE void store(hn::VFromD<D> v, std::byte* p) const {
        const ByteTag d;
        hn::BlendedStore(hn::BitCast(d, v), hn::FirstN(d, bytes_), d,
                         reinterpret_cast<std::uint8_t*>(p));
    }

private:
    using ByteTag = hn::Repartition<std::uint8_t, D>;
#else
    HWY_INLINE hn::VFromD<D> load(const std::byte* p) const {
        alignas(64) std::array<std::byte, kRoom> room{};
        std::memcpy(room.data(), p, bytes_);
        return HWY_NAMESPACE::load(D(), room.data());
    }
    HWY_INLINE void store(hn::VFromD<D> v, std::byte* p) const {
        alignas(64) std::array<std::byte, kRoom> room;
        HWY_NAMESPACE::store(D(), v, room.data());
        std::memcpy(p, room.data(), bytes_);
    }

private:
    static constexpr std::size_t kRoom = HWY_MAX_BYTES;
#endif
    std::size_t bytes_;
};

/// One vector of `out = op(a, b)`.
template <class D, class Op>
HWY_INLINE void fold_vector(D d, const Op& op, std::byte* out, const std::byte* a,
                            const std::byte* b) {
    store(d, op(d, load(d, a), load(d, b)), out);
}

template <class D, class Op>
HWY_INLINE void fold_tail(const Op& op, std::byte* out, const std::byte* a, const std::byte* b,
                          std::size_t bytes) {
    const Tail<D> tail(bytes);
    tail.store(op(D(), tail.load(a), tail.load(b)), out);
}

// Only x86 has stores that bypass the caches.
#undef NEXAR_STREAMS
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#define NEXAR_STREAMS 1
#else
#define NEXAR_STREAMS 0
#endif

#if NEXAR_STREAMS

/// From this size on, a result that is disjoint from its operands bypasses the caches: it would not
/// stay there anyway, and its lines need not be read first. Measured: one third faster at 64 MiB,
/// slower if the result still fits in the cache.
inline constexpr std::size_t kStreamFrom = std::size_t{32} << 20;

/// Folds the head up to an aligned `out` and all whole vectors after it, and returns the number of
/// bytes; 0 if `out` cannot be aligned at an element boundary.
template <class D, class Op>
HWY_NOINLINE std::size_t fold_streaming(std::byte* out, const std::byte* a, const std::byte* b,
                                        std::size_t bytes) {
    constexpr std::size_t kLargestElement = 16;
    const D d;
    const hn::Repartition<std::uint8_t, D> byte_tag;
    const Op op{};
    const std::size_t step = vector_bytes(d);
    const std::size_t head = -reinterpret_cast<std::uintptr_t>(out) & (step - 1);
    // The smallest streaming store writes 16 bytes.
    if (head % kLargestElement != 0 || step < 16) return 0;
    if (head != 0) fold_tail<D>(op, out, a, b, head);
    std::size_t i = head;
    for (; i + step <= bytes; i += step) {
        const auto r = op(d, load(d, a + i), load(d, b + i));
        hn::Stream(hn::BitCast(byte_tag, r), byte_tag, reinterpret_cast<std::uint8_t*>(out + i));
    }
    hwy::FlushStream();
    return i;
}

#endif  // NEXAR_STREAMS

/// Folds a whole range. D is the tag of the vectors that Op takes. Four vectors per iteration hide
/// the latency of loads; eight were no faster in measurements.
template <class D, class Op>
void fold(std::byte* out, const std::byte* a, const std::byte* b, std::size_t bytes) {
    const D d;
    const Op op{};
    const std::size_t step = vector_bytes(d);
    std::size_t i = 0;
#if NEXAR_STREAMS
    if (bytes >= kStreamFrom && out != a && out != b) i = fold_streaming<D, Op>(out, a, b, bytes);
#endif
    for (; bytes - i >= 4 * step; i += 4 * step) {
        // The stores come last: the compiler must assume that `out` aliases the operands.
        const auto r0 = op(d, load(d, a + i), load(d, b + i));
        const auto r1 = op(d, load(d, a + i + step), load(d, b + i + step));
        const auto r2 = op(d, load(d, a + i + 2 * step), load(d, b + i + 2 * step));
        const auto r3 = op(d, load(d, a + i + 3 * step), load(d, b + i + 3 * step));
        store(d, r0, out + i);
        store(d, r1, out + i + step);
        store(d, r2, out + i + 2 * step);
        store(d, r3, out + i + 3 * step);
    }
    for (; bytes - i >= step; i += step) fold_vector(d, op, out + i, a + i, b + i);
    if (i != bytes) fold_tail<D>(op, out + i, a + i, b + i, bytes - i);
}

/// data = op(data) over a whole range, with the same handling of the tail.
template <class D, class Op>
HWY_INLINE void map(const Op& op, std::byte* data, std::size_t bytes) {
    const D d;
    const std::size_t step = vector_bytes(d);
    std::size_t i = 0;
    for (; bytes - i >= step; i += step) store(d, op(d, load(d, data + i)), data + i);
    if (i == bytes) return;
    const Tail<D> tail(bytes - i);
    tail.store(op(d, tail.load(data + i)), data + i);
}

}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NEXAR_COMPUTE_LOOP_INL
