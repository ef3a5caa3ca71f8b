#pragma once

#include <array>
#include <cstdint>
#include <nexar/types.hpp>
#include <optional>
#include <vector>

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

/// What receives are matched by.
struct MatchKey {
    static constexpr std::uint64_t kAny = std::uint64_t{1} << 32;

    std::uint64_t source = kAny;  // a Rank, or kAny
    std::uint64_t tag = 0;
    bool any_tag = false;

    friend bool operator==(const MatchKey&, const MatchKey&) noexcept = default;
    std::size_t hash(std::uint64_t seed) const noexcept;
};

MatchKey key_of(const Pattern& pattern) noexcept;

/// A receive that waits for its message.
struct Posted {
    Pattern pattern{};
    std::uint64_t order = 0;
    bool posted = false;
    Hook<Posted> queue_hook{};
    Hook<Posted> all_hook{};
};

/// A message that waits for its receive.
struct Arrived {
    Rank source{};
    Tag tag{};
    bool waiting = false;
    Hook<Arrived> exact_hook{};
    Hook<Arrived> source_hook{};
    Hook<Arrived> tag_hook{};
    Hook<Arrived> all_hook{};
};

/// The receives and messages of one communicator that have not found each other. MPI's rules: of
/// the receives that fit a message the one posted first gets it; of the messages that fit a receive
/// the one that came first. A message and a receive that fit are never both in here.
///
/// Every call costs the same however many wait, but for the first time that so many do, and the
/// first time that a receive names only a source, or only a tag.
class Matcher {
public:
    /// For ranks below `world`. `seed` changes costs only, see KeyedQueues.
    Matcher(std::uint32_t world, std::uint64_t seed)
        : posted_by_key_(seed), exact_(seed), by_tag_(seed), by_source_(world) {}

    /// The receive that a message goes to, taken out; nullptr: none waits for it.
    Posted* take_posted(Rank source, Tag tag) noexcept;
    void add(Posted& receive);
    void remove(Posted& receive) noexcept;

    /// The message that a receive gets; stays until remove().
    Arrived* find(const Pattern& pattern);
    void add(Arrived& message);
    void remove(Arrived& message) noexcept;

    /// In order, for ending them: the next of `before`, or the first.
    Posted* next_posted(const Posted* before) const noexcept {
        return before == nullptr ? posted_.first() : AllPosted::after(*before);
    }
    Arrived* next_arrived(const Arrived* before) const noexcept {
        return before == nullptr ? arrived_.first() : AllArrived::after(*before);
    }

private:
    using AllPosted = IntrusiveList<Posted, &Posted::all_hook>;
    using AllArrived = IntrusiveList<Arrived, &Arrived::all_hook>;

    KeyedQueues<Posted, &Posted::queue_hook, MatchKey> posted_by_key_;
    AllPosted posted_;
    std::uint64_t next_order_ = 0;
    // How many receives name source and tag, only the source, only the tag, nothing: what nobody
    // waits with need not be looked up.
    std::array<std::uint64_t, 4> counts_{};

    // Messages by source and by tag alone are kept in order only from the first time on that
    // somebody asks: each list costs a message some cache lines.
    void index_sources();
    void index_tags();
    bool sources_indexed_ = false;
    bool tags_indexed_ = false;

    KeyedQueues<Arrived, &Arrived::exact_hook, MatchKey> exact_;
    KeyedQueues<Arrived, &Arrived::tag_hook, MatchKey> by_tag_;
    std::vector<IntrusiveList<Arrived, &Arrived::source_hook>> by_source_;
    AllArrived arrived_;
};

}  // namespace nexar::engine
