#include "engine/matcher.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/mix.hpp"

namespace nexar::engine {

namespace {

std::size_t kind_of(const Pattern& pattern) noexcept {
    return (pattern.source ? 0U : 2U) + (pattern.tag ? 0U : 1U);
}

template <class T, class Queues>
std::vector<T*> in_order(const Queues& queues, bool messages) {
    std::vector<T*> all;
    queues.for_each([&](Matchable& one) {
        if (one.is_message == messages) all.push_back(static_cast<T*>(&one));
    });
    std::ranges::sort(all, {}, [](const T* one) { return one->order; });
    return all;
}

}  // namespace

std::size_t MatchKey::hash(std::uint64_t seed) const noexcept {
    const std::uint64_t open = (any_source ? 1U : 0U) + (any_tag ? 2U : 0U);
    return mixed(tag ^ mixed(seed ^ (std::uint64_t{source} << 2U | open)));
}

void Matcher::put(Matchable& one) {
    NEXAR_ASSERT(!one.waiting);
    waiting_.push_back(one);
    one.order = next_order_++;
    one.waiting = true;
}

void Matcher::take_out(Matchable& one) noexcept {
    NEXAR_ASSERT(one.waiting);
    waiting_.erase(one);
    one.waiting = false;
}

PostedReceive* Matcher::first_posted(Rank source, Tag tag) const noexcept {
    if (only_ != nullptr) return only_->pattern.fits(source, tag) ? only_ : nullptr;
    Matchable* oldest = nullptr;
    const auto look = [&](const MatchKey& key) {
        Matchable* const found = waiting_.first(key);
        if (found == nullptr || found->is_message) return;
        if (oldest == nullptr || found->order < oldest->order) oldest = found;
    };
    if (counts_[0] != 0) {
        look({.tag = tag.value(), .source = source.value(), .any_source = false, .any_tag = false});
    }
    if ((counts_[1] | counts_[2] | counts_[3]) != 0) {  // with a wildcard
        if (counts_[1] != 0) look({.source = source.value(), .any_source = false});
        if (counts_[2] != 0) look({.tag = tag.value(), .any_tag = false});
        if (counts_[3] != 0) look({});
    }
    return static_cast<PostedReceive*>(oldest);
}

PostedReceive* Matcher::take_posted(Rank source, Tag tag) noexcept {
    PostedReceive* const found = first_posted(source, tag);
    if (found != nullptr) remove(*found);
    return found;
}

void Matcher::add(PostedReceive& receive) {
    if (only_ == nullptr && (counts_[0] | counts_[1] | counts_[2] | counts_[3]) == 0) {
        NEXAR_ASSERT(!receive.waiting);
        only_ = &receive;
        receive.order = next_order_++;
        receive.waiting = true;
        return;
    }
    if (only_ != nullptr) put_only();
    receive.key = key_of(receive.pattern);
    put(receive);
    ++counts_[kind_of(receive.pattern)];
}

/// A second receive follows, so the first one needs a queue too.
void Matcher::put_only() {
    PostedReceive& first = *std::exchange(only_, nullptr);
    first.key = key_of(first.pattern);
    waiting_.push_back(first);
    ++counts_[kind_of(first.pattern)];
}

void Matcher::remove(PostedReceive& receive) noexcept {
    if (only_ == &receive) {
        only_ = nullptr;
        receive.waiting = false;
        return;
    }
    take_out(receive);
    --counts_[kind_of(receive.pattern)];
}

std::vector<PostedReceive*> Matcher::all_posted() const {
    if (only_ != nullptr) return {only_};
    return in_order<PostedReceive>(waiting_, false);
}

std::vector<Arrived*> Matcher::all_arrived() const {
    return in_order<Arrived>(waiting_, true);
}

void Matcher::index_tags() {
    if (std::exchange(tags_indexed_, true)) return;
    for (Arrived* message : all_arrived()) by_tag_.push_back(*message);
}

void Matcher::index_sources() {
    if (std::exchange(sources_indexed_, true)) return;
    for (Arrived* message : all_arrived()) by_source_[message->source.value()].push_back(*message);
}

void Matcher::index_all() {
    if (std::exchange(all_indexed_, true)) return;
    for (Arrived* message : all_arrived()) all_.push_back(*message);
}

Arrived* Matcher::find(const Pattern& pattern) {
    if (pattern.source && pattern.source->value() >= by_source_.size()) return nullptr;
    switch (kind_of(pattern)) {
        case 0: {
            Matchable* const found = waiting_.first(key_of(pattern));
            return found == nullptr || !found->is_message ? nullptr : static_cast<Arrived*>(found);
        }
        case 1:
            index_sources();
            return by_source_[pattern.source.value_or(Rank{}).value()].first();
        case 2:
            index_tags();
            return by_tag_.first(key_of(pattern));
        default:
            index_all();
            return all_.first();
    }
}

void Matcher::add(Arrived& message) {
    message.key = key_of({.source = message.source, .tag = message.tag});
    message.is_message = true;
    put(message);
    if (tags_indexed_) by_tag_.push_back(message);
    if (sources_indexed_) by_source_[message.source.value()].push_back(message);
    if (all_indexed_) all_.push_back(message);
}

void Matcher::remove(Arrived& message) noexcept {
    take_out(message);
    if (tags_indexed_) by_tag_.erase(message);
    if (sources_indexed_) by_source_[message.source.value()].erase(message);
    if (all_indexed_) all_.erase(message);
}

}  // namespace nexar::engine
