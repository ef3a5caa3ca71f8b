#include "engine/matcher.hpp"

#include <array>
#include <utility>

#include "base/assert.hpp"

namespace nexar::engine {

namespace {

// The finaliser of MurmurHash3: every bit of the input moves every bit of the result.
std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdU;
    x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53U;
    return x ^ (x >> 33U);
}

std::size_t kind_of(const Pattern& pattern) noexcept {
    return (pattern.source ? 0U : 2U) + (pattern.tag ? 0U : 1U);
}

MatchKey exact_key(const Arrived& message) noexcept {
    return key_of({.source = message.source, .tag = message.tag});
}

MatchKey tag_key(const Arrived& message) noexcept {
    return key_of({.source = {}, .tag = message.tag});
}

}  // namespace

std::size_t MatchKey::hash(std::uint64_t seed) const noexcept {
    return mixed(tag ^ mixed(source ^ (any_tag ? ~seed : seed)));
}

MatchKey key_of(const Pattern& pattern) noexcept {
    return {.source = pattern.source ? pattern.source->value() : MatchKey::kAny,
            .tag = pattern.tag.value_or(Tag{}).value(),
            .any_tag = !pattern.tag};
}

Posted* Matcher::take_posted(Rank source, Tag tag) noexcept {
    const std::array<Pattern, 4> patterns{Pattern{.source = source, .tag = tag},
                                          Pattern{.source = source, .tag = {}},
                                          Pattern{.source = {}, .tag = tag}, Pattern{}};
    Posted* oldest = nullptr;
    for (const Pattern& pattern : patterns) {
        if (counts_[kind_of(pattern)] == 0) continue;
        Posted* found = posted_by_key_.first(key_of(pattern));
        if (found == nullptr) continue;
        if (oldest == nullptr || found->order < oldest->order) oldest = found;
    }
    if (oldest != nullptr) remove(*oldest);
    return oldest;
}

void Matcher::add(Posted& receive) {
    NEXAR_ASSERT(!receive.posted);
    posted_by_key_.push_back(key_of(receive.pattern), receive);
    posted_.push_back(receive);
    ++counts_[kind_of(receive.pattern)];
    receive.order = next_order_++;
    receive.posted = true;
}

void Matcher::remove(Posted& receive) noexcept {
    NEXAR_ASSERT(receive.posted);
    posted_by_key_.erase(key_of(receive.pattern), receive);
    posted_.erase(receive);
    --counts_[kind_of(receive.pattern)];
    receive.posted = false;
}

void Matcher::index_sources() {
    if (std::exchange(sources_indexed_, true)) return;
    for (Arrived* message = arrived_.first(); message != nullptr;
         message = AllArrived::after(*message)) {
        by_source_[message->source.value()].push_back(*message);
    }
}

void Matcher::index_tags() {
    if (std::exchange(tags_indexed_, true)) return;
    for (Arrived* message = arrived_.first(); message != nullptr;
         message = AllArrived::after(*message)) {
        by_tag_.push_back(tag_key(*message), *message);
    }
}

Arrived* Matcher::find(const Pattern& pattern) {
    if (pattern.source && pattern.source->value() >= by_source_.size()) return nullptr;
    switch (kind_of(pattern)) {
        case 0:
            return exact_.first(key_of(pattern));
        case 1:
            index_sources();
            return by_source_[pattern.source.value_or(Rank{}).value()].first();
        case 2:
            index_tags();
            return by_tag_.first(key_of(pattern));
        default:
            return arrived_.first();
    }
}

void Matcher::add(Arrived& message) {
    NEXAR_ASSERT(!message.waiting);
    exact_.push_back(exact_key(message), message);
    if (tags_indexed_) by_tag_.push_back(tag_key(message), message);
    if (sources_indexed_) by_source_[message.source.value()].push_back(message);
    arrived_.push_back(message);
    message.waiting = true;
}

void Matcher::remove(Arrived& message) noexcept {
    NEXAR_ASSERT(message.waiting);
    exact_.erase(exact_key(message), message);
    if (tags_indexed_) by_tag_.erase(tag_key(message), message);
    if (sources_indexed_) by_source_[message.source.value()].erase(message);
    arrived_.erase(message);
    message.waiting = false;
}

}  // namespace nexar::engine
