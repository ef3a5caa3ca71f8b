#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.hpp"

// AddressSanitizer detects uses of ended objects, although their memory is not freed.
#if defined(__SANITIZE_ADDRESS__)
#define NEXAR_SLAB_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NEXAR_SLAB_POISONS 1
#endif
#endif
#ifdef NEXAR_SLAB_POISONS
#include <sanitizer/asan_interface.h>
#endif

namespace nexar {

/// Allocates objects of one type that are created and destroyed frequently. Allocates memory in
/// groups, reuses it, and frees it only when the slab is destroyed. Use by one thread at a time.
template <class T>
class Slab {
public:
    Slab() = default;
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;
    ~Slab() { NEXAR_ASSERT(used_ == 0, "every object must be ended before its slab"); }

    /// Throws std::bad_alloc.
    template <class... Arguments>
    T& make(Arguments&&... arguments) {
        static_assert(std::is_nothrow_constructible_v<T, Arguments...>);
        if (free_ == nullptr) grow();
        Place* place = free_;
        allow(*place);
        free_ = place->next;  // read before the object overwrites it
        ++used_;
        return *std::construct_at(reinterpret_cast<T*>(place->memory.data()),
                                  std::forward<Arguments>(arguments)...);
    }

    void end(T& object) noexcept {
        std::destroy_at(&object);
        // The object is at the beginning of its place.
        auto* place = reinterpret_cast<Place*>(&object);
        place->next = free_;
        free_ = place;
        forbid(*place);
        --used_;
    }

    /// Number of live objects.
    std::size_t used() const noexcept { return used_; }
    /// Allocated memory, for live objects and later ones.
    std::size_t held_bytes() const noexcept { return groups_.size() * sizeof(Group); }

private:
    union Place {
        // NOLINTNEXTLINE(modernize-use-equals-default): a union with storage has no default
        Place() noexcept : next(nullptr) {}
        alignas(T) std::array<std::byte, sizeof(T)> memory;
        Place* next;
    };
    static constexpr std::size_t kPlaces = sizeof(T) < 1024 ? 16384 / sizeof(T) : 16;
    using Group = std::array<Place, kPlaces>;

    static void allow([[maybe_unused]] Place& place) noexcept {
#ifdef NEXAR_SLAB_POISONS
        ASAN_UNPOISON_MEMORY_REGION(&place, sizeof place);
#endif
    }
    static void forbid([[maybe_unused]] Place& place) noexcept {
#ifdef NEXAR_SLAB_POISONS
        ASAN_POISON_MEMORY_REGION(&place, sizeof place);
#endif
    }

    void grow() {
        groups_.push_back(std::make_unique<Group>());
        for (Place& place : *groups_.back()) {
            place.next = free_;
            free_ = &place;
            forbid(place);
        }
    }

    std::vector<std::unique_ptr<Group>> groups_;
    Place* free_ = nullptr;
    std::size_t used_ = 0;
};

}  // namespace nexar
