#pragma once

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/time.hpp"

namespace nexar::link {

/// Orders objects by due time. Each object stores its position in the heap as `std::size_t
/// heap_place`, so changing its time needs no search. Does not own the objects.
template <class T>
class TimerHeap {
public:
    static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

    bool empty() const noexcept { return heap_.empty(); }
    TimePoint due() const noexcept { return heap_.front().due; }
    T& first() const noexcept { return *heap_.front().thing; }

    /// Sets when `thing` is due, and adds it if it is not in the heap. TimePoint::max() removes it.
    void set(T& thing, TimePoint due) {
        if (due == TimePoint::max()) {
            remove(thing);
            return;
        }
        if (thing.heap_place == kNowhere) {
            thing.heap_place = heap_.size();
            heap_.push_back({due, &thing});
            rise(thing.heap_place);
            return;
        }
        const TimePoint before = std::exchange(heap_[thing.heap_place].due, due);
        if (due < before) {
            rise(thing.heap_place);
        } else {
            sink(thing.heap_place);
        }
    }

    void remove(T& thing) noexcept {
        const std::size_t place = std::exchange(thing.heap_place, kNowhere);
        if (place == kNowhere) return;
        NEXAR_ASSERT(heap_[place].thing == &thing);
        const Entry last = heap_.back();
        heap_.pop_back();
        if (place == heap_.size()) return;
        put(place, last);
        rise(place);
        sink(last.thing->heap_place);
    }

private:
    struct Entry {
        TimePoint due;
        T* thing;
    };

    void put(std::size_t place, const Entry& entry) noexcept {
        heap_[place] = entry;
        entry.thing->heap_place = place;
    }

    void rise(std::size_t place) noexcept {
        const Entry entry = heap_[place];
        while (place > 0 && heap_[(place - 1) / 2].due > entry.due) {
            put(place, heap_[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        put(place, entry);
    }

    void sink(std::size_t place) noexcept {
        const Entry entry = heap_[place];
        for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
            if (child + 1 < heap_.size() && heap_[child + 1].due < heap_[child].due) ++child;
            if (heap_[child].due >= entry.due) break;
            put(place, heap_[child]);
            place = child;
        }
        put(place, entry);
    }

    std::vector<Entry> heap_;
};

}  // namespace nexar::link
