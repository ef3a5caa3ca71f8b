#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "engine/intrusive_list.hpp"

namespace nexar::engine {

/// A queue per key. Finding the first of a key, adding and taking out cost the same however many
/// keys and objects there are. A key without objects takes no memory that others could not use.
/// Allocates only when there are more keys at once than ever before.
template <class T, Hook<T> T::* HookOf, class Key>
class KeyedQueues {
public:
    /// `seed` keeps keys of somebody else's choice from meeting in one bucket.
    explicit KeyedQueues(std::uint64_t seed) : seed_(seed), buckets_(16) {}

    KeyedQueues(const KeyedQueues&) = delete;
    KeyedQueues& operator=(const KeyedQueues&) = delete;
    /// What is still in a queue stays its owner's.
    ~KeyedQueues() {
        for (Queue* queue : buckets_) {
            while (queue != nullptr) queues_.end(*std::exchange(queue, queue->next));
        }
    }

    /// The oldest of a key; nullptr: none.
    T* first(const Key& key) const noexcept {
        const Queue* queue = find(key);
        return queue == nullptr ? nullptr : queue->list.first();
    }

    void push_back(const Key& key, T& object) {
        Queue* queue = find(key);
        if (queue == nullptr) {
            if (queues_.used() >= buckets_.size()) grow();
            queue = &queues_.make();
            queue->key = key;
            Queue*& bucket = bucket_of(buckets_, key);
            queue->next = bucket;
            bucket = queue;
        }
        queue->list.push_back(object);
    }

    void erase(const Key& key, T& object) noexcept {
        Queue** place = &bucket_of(buckets_, key);
        while (!((*place)->key == key)) place = &(*place)->next;
        Queue* queue = *place;
        queue->list.erase(object);
        if (!queue->list.empty()) return;
        *place = queue->next;
        queues_.end(*queue);
    }

    std::size_t keys() const noexcept { return queues_.used(); }

private:
    struct Queue {
        Key key{};
        IntrusiveList<T, HookOf> list{};
        Queue* next = nullptr;
    };
    using Buckets = std::vector<Queue*>;

    Queue*& bucket_of(Buckets& buckets, const Key& key) const noexcept {
        return buckets[key.hash(seed_) & (buckets.size() - 1)];
    }

    Queue* find(const Key& key) const noexcept {
        Queue* queue = buckets_[key.hash(seed_) & (buckets_.size() - 1)];
        while (queue != nullptr && !(queue->key == key)) queue = queue->next;
        return queue;
    }

    void grow() {
        Buckets larger(buckets_.size() * 2);
        for (Queue* queue : buckets_) {
            while (queue != nullptr) {
                Queue* next = queue->next;
                Queue*& bucket = bucket_of(larger, queue->key);
                queue->next = bucket;
                bucket = queue;
                queue = next;
            }
        }
        buckets_.swap(larger);
    }

    std::uint64_t seed_;
    Slab<Queue> queues_;
    Buckets buckets_;  // a power of two
};

}  // namespace nexar::engine
