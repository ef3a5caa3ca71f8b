// The loops that every SIMD kernel shares. Compiled once per instruction set: include it after
// hwy/foreach_target.h, from a file that is itself HWY_TARGET_INCLUDE. The guard below toggles, as
// Highway prescribes.

#if defined(NEXAR_COMPUTE_LOOP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NEXAR_COMPUTE_LOOP_INL
#undef NEXAR_COMPUTE_LOOP_INL
#else
#define NEXAR_COMPUTE_LOOP_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace nexar::compute::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Loads and stores go by bytes: valid at any alignment and for any type of object in memory.
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

/// Room for one vector of any length that the target may have.
struct alignas(64) VectorRoom {
    std::array<std::byte, HWY_MAX_BYTES < 64 ? 64 : HWY_MAX_BYTES> bytes{};
};

/// One vector of `out = op(a, b)`.
template <class D, class Op>
HWY_INLINE void fold_vector(D d, const Op& op, std::byte* out, const std::byte* a,
                            const std::byte* b) {
    store(d, op(d, load(d, a), load(d, b)), out);
}

/// The end of a range, shorter than a vector: the same vector code on padded copies, so that the
/// tail has the bits that the body would have given.
template <class D, class Op>
HWY_NOINLINE void fold_tail(const Op& op, std::byte* out, const std::byte* a, const std::byte* b,
                            std::size_t bytes) {
    VectorRoom left;
    VectorRoom right;
    std::memcpy(left.bytes.data(), a, bytes);
    std::memcpy(right.bytes.data(), b, bytes);
    fold_vector(D(), op, left.bytes.data(), left.bytes.data(), right.bytes.data());
    std::memcpy(out, left.bytes.data(), bytes);
}

/// The fold of a whole range. D is the tag of the vectors that Op takes; four of them per turn hide
/// the latency of loads, and more gained nothing where it was measured.
template <class D, class Op>
void fold(std::byte* out, const std::byte* a, const std::byte* b, std::size_t bytes) {
    const D d;
    const Op op{};
    const std::size_t step = vector_bytes(d);
    std::size_t i = 0;
    if (bytes >= 4 * step) {
        for (; i <= bytes - 4 * step; i += 4 * step) {
            // All loads come before the stores: the compiler cannot know that `out` is a, b or
            // apart.
            const auto r0 = op(d, load(d, a + i), load(d, b + i));
            const auto r1 = op(d, load(d, a + i + step), load(d, b + i + step));
            const auto r2 = op(d, load(d, a + i + 2 * step), load(d, b + i + 2 * step));
            const auto r3 = op(d, load(d, a + i + 3 * step), load(d, b + i + 3 * step));
            store(d, r0, out + i);
            store(d, r1, out + i + step);
            store(d, r2, out + i + 2 * step);
            store(d, r3, out + i + 3 * step);
        }
    }
    for (; i + step <= bytes; i += step) fold_vector(d, op, out + i, a + i, b + i);
    if (i < bytes) fold_tail<D>(op, out + i, a + i, b + i, bytes - i);
}

/// data = op(data) over a whole range, by the same rules.
template <class D, class Op>
HWY_INLINE void map(const Op& op, std::byte* data, std::size_t bytes) {
    const D d;
    const std::size_t step = vector_bytes(d);
    std::size_t i = 0;
    for (; i + step <= bytes; i += step) store(d, op(d, load(d, data + i)), data + i);
    if (i == bytes) return;
    VectorRoom room;
    std::memcpy(room.bytes.data(), data + i, bytes - i);
    store(d, op(d, load(d, room.bytes.data())), room.bytes.data());
    std::memcpy(data + i, room.bytes.data(), bytes - i);
}

}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NEXAR_COMPUTE_LOOP_INL
