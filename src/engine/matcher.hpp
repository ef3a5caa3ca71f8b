#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/keyed_queues.hpp"

namespace nexar::engine {

/// Which messages a receive or a probe matches; nullopt matches anything.
struct Pattern {
    std::optional<Rank> source{};
    std::optional<Tag> tag{};

    bool fits(Rank from, Tag with) const noexcept {
        return source.value_or(from) == from && tag.value_or(with) == with;
    }
};

/// The key by which receives are matched; 0 where anything matches.
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
    // For receives with a wildcard, see Matcher.
    KeyedHook<Arrived> tag_hook{};
    Hook<Arrived> source_hook{};
    Hook<Arrived> all_hook{};
};

/// The unmatched receives and messages of one communicator. It follows MPI's rules: of the receives
/// that match a message, the one posted first gets it; of the messages that match a receive, it
/// gets the one that arrived first. A message and a receive that match are never both in the
/// matcher.
///
/// The cost of a call does not depend on how many wait, except when more wait than ever before, and
/// when a receive first has a wildcard for source, tag or both.
class Matcher {
public:
    /// For ranks below `world`. `seed` affects speed only, see KeyedQueues.
    Matcher(std::uint32_t world, std::uint64_t seed)
        : waiting_(seed), by_tag_(seed), by_source_(world) {}

    /// The receive that a message matches, or nullptr. It stays in the matcher until remove().
    PostedReceive* first_posted(Rank source, Tag tag) const noexcept;
    /// The same, but removes it.
    PostedReceive* take_posted(Rank source, Tag tag) noexcept;
    void add(PostedReceive& receive);
    void remove(PostedReceive& receive) noexcept;

    /// The message that a receive gets, or nullptr. It stays in the matcher until remove().
    Arrived* find(const Pattern& pattern);
    void add(Arrived& message);
    void remove(Arrived& message) noexcept;

    /// Everything that waits, in order.
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

    // Receives by the source and tag that they name, and messages by source and tag. A queue never
    // has both, since they would match, so one lookup finds either the match or the place to wait.
    KeyedQueues<Matchable, &Matchable::hook, KeyOf> waiting_;
    std::uint64_t next_order_ = 0;
    // The only receive, which is not in a queue then: programs often receive one message at a time.
    PostedReceive* only_ = nullptr;
    // How many receives name source and tag, only the source, only the tag, nothing: a count of 0
    // saves the lookup.
    std::array<std::uint64_t, 4> counts_{};

    // The lists of messages by tag alone, by source alone, and of all messages are built when first
    // needed: each costs a few cache lines per message.
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
    void put_only();
    void take_out(Matchable& one) noexcept;
};

}  // namespace nexar::engine
