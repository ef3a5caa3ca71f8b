#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>
#include "base/types.hpp"

#include "engine/intrusive_list.hpp"
#include "engine/keyed_queues.hpp"

namespace nexar::engine {

/// Which messages a receive or a probe wants; what is not named may be anything.
struct Pattern {
    std::optional<Rank> source{};
    std::optional<Tag> tag{};

    bool fits(Rank from, Tag with) const noexcept {
        return source.value_or(from) == from && tag.value_or(with) == with;
    }
};

/// What receives are matched by; 0 where anything fits.
struct MatchKey {
    std::uint64_t tag = 0;
    std::uint32_t source = 0;
    bool any_source = true;
    bool any_tag = true;

    friend bool operator==(const MatchKey&, const MatchKey&) noexcept = default;
    std::size_t hash(std::uint64_t seed) const noexcept;
};

inline MatchKey key_of(const Pattern& pattern) noexcept {
    return {.tag = pattern.tag.value_or(Tag{}).value(),
            .source = pattern.source.value_or(Rank{}).value(),
            .any_source = !pattern.source,
            .any_tag = !pattern.tag};
}

/// A receive or a message in a Matcher.
struct Matchable {
    MatchKey key{};
    std::uint64_t order = 0;
    bool waiting = false;
    bool is_message = false;
    KeyedHook<Matchable> hook{};
};

/// A receive that waits for its message.
struct PostedReceive : Matchable {
    Pattern pattern{};
};

/// A message that waits for its receive.
struct Arrived : Matchable {
    Rank source{};
    Tag tag{};
    // For receives that leave something open, see Matcher.
    KeyedHook<Arrived> tag_hook{};
    Hook<Arrived> source_hook{};
    Hook<Arrived> all_hook{};
};

/// The receives and messages of one communicator that have not found each other. MPI's rules: of
/// the receives that fit a message the one posted first gets it; of the messages that fit a receive
/// the one that came first. A message and a receive that fit are never both in here.
///
/// Every call costs the same however many wait, but for the first time that so many do, and the
/// first time that a receive leaves source, tag or both open.
class Matcher {
public:
    /// For ranks below `world`. `seed` changes costs only, see KeyedQueues.
    Matcher(std::uint32_t world, std::uint64_t seed)
        : waiting_(seed), by_tag_(seed), by_source_(world) {}

    /// The receive that a message goes to, taken out; nullptr: none waits for it.
    PostedReceive* take_posted(Rank source, Tag tag) noexcept;
    void add(PostedReceive& receive);
    void remove(PostedReceive& receive) noexcept;

    /// The message that a receive gets; stays until remove().
    Arrived* find(const Pattern& pattern);
    void add(Arrived& message);
    void remove(Arrived& message) noexcept;

    /// All that waits, in order.
    std::vector<PostedReceive*> all_posted() const;
    std::vector<Arrived*> all_arrived() const;

private:
    struct KeyOf {
        const MatchKey& operator()(const Matchable& one) const noexcept { return one.key; }
    };
    struct TagOf {
        MatchKey operator()(const Arrived& message) const noexcept {
            return key_of({.source = {}, .tag = message.tag});
        }
    };

    // Receives by what they name, and messages by source and tag. A queue never has both: they
    // would have found each other. So one look tells either whom something meets or where it waits.
    KeyedQueues<Matchable, &Matchable::hook, KeyOf> waiting_;
    std::uint64_t next_order_ = 0;
    // How many receives name source and tag, only the source, only the tag, nothing: what nobody
    // waits with need not be looked up.
    std::array<std::uint64_t, 4> counts_{};

    // Messages by tag alone, by source alone, and all of them are kept in order only from the first
    // time on that somebody asks: each list costs a message some cache lines.
    void index_tags();
    void index_sources();
    void index_all();
    bool tags_indexed_ = false;
    bool sources_indexed_ = false;
    bool all_indexed_ = false;
    KeyedQueues<Arrived, &Arrived::tag_hook, TagOf> by_tag_;
    std::vector<IntrusiveList<Arrived, &Arrived::source_hook>> by_source_;
    IntrusiveList<Arrived, &Arrived::all_hook> all_;

    void put(Matchable& one);
    void take_out(Matchable& one) noexcept;
};

}  // namespace nexar::engine
