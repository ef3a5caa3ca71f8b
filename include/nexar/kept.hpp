#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <nexar/buffer.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <utility>
#include <vector>

/// Values that an operation owns until it is destroyed.

namespace nexar {

/// The chunks of all ranks in rank order, and the number of elements of each.
template <class T>
struct Gathered {
    std::vector<T> elements{};
    std::vector<std::size_t> counts{};

    /// The chunk of `rank`, which must be a rank of the communicator.
    std::span<const T> chunk(int rank) const {
        const auto at = static_cast<std::size_t>(rank);
        std::size_t begin = 0;
        for (std::size_t i = 0; i < at; ++i) begin += counts[i];
        return std::span(elements).subspan(begin, counts.at(at));
    }
};

namespace detail {

/// A vector of T with contiguous memory, which std::vector<bool> does not have.
struct BoolCell {
    bool value = false;
};
template <class T>
using Cells = std::vector<std::conditional_t<std::is_same_v<T, bool>, BoolCell, T>>;

template <class T>
std::vector<T> elements_of(Cells<T>&& cells) {
    if constexpr (std::is_same_v<T, bool>) {
        std::vector<bool> elements;
        for (const BoolCell cell : cells) elements.push_back(cell.value);
        return elements;
    } else {
        return std::move(cells);
    }
}

/// One value.
template <class T>
class Kept final : public Held {
public:
    explicit Kept(const T& initial) : value(initial) {}

    static Result<T> take(Task& task) { return static_cast<Kept&>(held(task)).value; }
    Buffer buffer() noexcept { return buffer_at(&value, 1); }

    T value;
};

/// A value that only the root gets.
template <class T>
class KeptAtRoot final : public Held {
public:
    KeptAtRoot(const T& initial, bool root) : value(initial), is_root(root) {}

    static Result<std::optional<T>> take(Task& task) {
        const auto& kept = static_cast<KeptAtRoot&>(held(task));
        return kept.is_root ? std::optional(kept.value) : std::nullopt;
    }
    Buffer buffer() noexcept { return buffer_at(&value, 1); }

    T value;
    bool is_root;
};

/// The value of an exclusive scan; rank 0 gets `first` instead of a reduction.
template <class T>
class KeptPrefix final : public Held {
public:
    KeptPrefix(const T& own, const T& at_rank_0, bool rank_0)
        : value(own), first(at_rank_0), is_first(rank_0) {}

    static Result<T> take(Task& task) {
        const auto& kept = static_cast<KeptPrefix&>(held(task));
        return kept.is_first ? kept.first : kept.value;
    }
    Buffer buffer() noexcept { return buffer_at(&value, 1); }

    T value;
    T first;
    bool is_first;
};

/// One value from each rank on ranks that get them all; on other ranks only the rank's own.
template <class T>
class KeptOfAll final : public Held {
public:
    KeptOfAll(const T& own, int rank, int size, bool gets_all)
        : values(gets_all ? static_cast<std::size_t>(size) : 1, {own}),
          own_at(gets_all ? static_cast<std::size_t>(rank) : 0),
          has_all(gets_all) {}

    static Result<std::vector<T>> take(Task& task) {
        auto& kept = static_cast<KeptOfAll&>(held(task));
        if (!kept.has_all) return std::vector<T>{};
        return elements_of<T>(std::move(kept.values));
    }
    ConstBuffer own() const noexcept { return const_buffer_at(values.data() + own_at, 1); }
    Buffer all() noexcept { return buffer_at(values.data(), values.size()); }

    Cells<T> values;
    std::size_t own_at;
    bool has_all;
};

NEXAR_EXPORT Error wrong_size(const Status& got, std::size_t wanted);

/// A value received in a message.
template <class T>
class KeptMessage final : public Held {
public:
    static Result<T> take(Task& task) {
        const Status got = status(task);
        if (got.bytes != sizeof(T)) return wrong_size(got, sizeof(T));
        return std::bit_cast<T>(static_cast<KeptMessage&>(held(task)).bytes);
    }
    Buffer buffer() noexcept { return buffer_at(bytes.data(), bytes.size()); }

    alignas(T) std::array<std::byte, sizeof(T)> bytes{};
};

/// Memory for chunks whose sizes the ranks exchange first.
class KeptRoom : public Held {
public:
    /// Allocates the memory; called once, with the counts of the chunks. Throws std::bad_alloc or
    /// std::length_error.
    virtual Buffer make_room(std::vector<std::size_t> counts) = 0;
};

template <class T>
class KeptChunks final : public KeptRoom {
public:
    static Result<Gathered<T>> take(Task& task) {
        auto& kept = static_cast<KeptChunks&>(held(task));
        return Gathered<T>{.elements = elements_of<T>(std::move(kept.elements)),
                           .counts = std::move(kept.counts)};
    }
    Buffer make_room(std::vector<std::size_t> given) override {
        std::size_t total = 0;
        for (const std::size_t count : given) total += count;
        elements.resize(total);
        counts = std::move(given);
        return buffer_at(elements.data(), total);
    }

    Cells<T> elements{};
    std::vector<std::size_t> counts{};
};

template <class T>
class KeptChunk final : public KeptRoom {
public:
    static Result<std::vector<T>> take(Task& task) {
        return elements_of<T>(std::move(static_cast<KeptChunk&>(held(task)).elements));
    }
    Buffer make_room(std::vector<std::size_t> counts) override {
        elements.resize(counts.at(0));
        return buffer_at(elements.data(), elements.size());
    }

    Cells<T> elements{};
};

}  // namespace detail

}  // namespace nexar
