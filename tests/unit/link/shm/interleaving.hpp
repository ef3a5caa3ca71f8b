#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

/// Explores all interleavings of two small programs on a weak memory model.
namespace nexar::testing {

/// Memory of a few words, with a store buffer per thread. Stores of one thread may reach memory in
/// any order, except that stores to one word keep theirs, and that a release store waits for all
/// stores before it. A thread sees its own stores at once. Loads happen in order.
class WeakMemory {
public:
    static constexpr std::size_t kWords = 16;
    enum class Order : std::uint8_t { relaxed, release };

    std::uint8_t load(std::size_t thread, std::size_t word) const {
        const auto& buffer = buffers_[thread];
        for (auto it = buffer.rbegin(); it != buffer.rend(); ++it) {
            if (it->word == word) return it->value;
        }
        return words_[word];
    }
    void store(std::size_t thread, std::size_t word, std::size_t value, Order order) {
        buffers_[thread].push_back({static_cast<std::uint8_t>(word),
                                    static_cast<std::uint8_t>(value), order == Order::release});
    }
    /// A system call: reaches memory at once, after everything before it.
    bool store_through(std::size_t thread, std::size_t word, std::size_t value) {
        if (!drained(thread)) return false;
        words_[word] = static_cast<std::uint8_t>(value);
        return true;
    }
    /// True if all stores of the thread are in memory: what a full fence waits for.
    bool drained(std::size_t thread) const { return buffers_[thread].empty(); }

    std::size_t buffered(std::size_t thread) const { return buffers_[thread].size(); }
    bool may_drain(std::size_t thread, std::size_t index) const {
        const auto& buffer = buffers_[thread];
        if (buffer[index].release) return index == 0;
        for (std::size_t i = 0; i < index; ++i) {
            if (buffer[i].word == buffer[index].word) return false;
        }
        return true;
    }
    void drain(std::size_t thread, std::size_t index) {
        auto& buffer = buffers_[thread];
        words_[buffer[index].word] = buffer[index].value;
        buffer.erase(buffer.begin() + static_cast<std::ptrdiff_t>(index));
    }

    void describe(std::string& out) const {
        out.append(words_.begin(), words_.end());
        for (const auto& buffer : buffers_) {
            out.push_back(static_cast<char>(buffer.size()));
            for (const Store& store : buffer) {
                out.push_back(static_cast<char>(store.word));
                out.push_back(static_cast<char>(store.value));
                out.push_back(store.release ? '\1' : '\0');
            }
        }
    }

private:
    struct Store {
        std::uint8_t word;
        std::uint8_t value;
        bool release;
    };
    std::array<std::uint8_t, kWords> words_{};
    std::array<std::vector<Store>, 2> buffers_{};
};

enum class Step : std::uint8_t { went_on, waits, done, wrong };

/// Runs `First` as thread 0 and `Second` as thread 1 in every order. A program has
/// `Step step(WeakMemory&)`, which does at most one thing that the other can observe, and
/// `void describe(std::string&)`, its state. A program that waits must not have changed anything.
template <class First, class Second>
class Explorer {
public:
    struct Outcome {
        std::size_t states = 0;
        std::size_t wrong = 0;  // states in which a program saw something impossible
        std::size_t stuck = 0;  // states in which a program waits and nothing will happen
    };

    Explorer(First first, Second second) : start_{WeakMemory(), first, second} {}

    Outcome explore() {
        std::vector<State> waiting{start_};
        seen_.insert(key(start_));
        Outcome outcome;
        while (!waiting.empty()) {
            const State state = waiting.back();
            waiting.pop_back();
            ++outcome.states;
            bool moved = false;
            bool finished = true;
            const auto visit = [&](State next) {
                moved = true;
                if (seen_.insert(key(next)).second) waiting.push_back(std::move(next));
            };
            for (std::size_t thread = 0; thread < 2; ++thread) {
                for (std::size_t i = 0; i < state.memory.buffered(thread); ++i) {
                    if (!state.memory.may_drain(thread, i)) continue;
                    State next = state;
                    next.memory.drain(thread, i);
                    visit(std::move(next));
                }
                State next = state;
                const Step step =
                    thread == 0 ? next.first.step(next.memory) : next.second.step(next.memory);
                if (step == Step::wrong) ++outcome.wrong;
                if (step != Step::done) finished = false;
                if (step == Step::went_on) visit(std::move(next));
            }
            if (!moved && !finished) ++outcome.stuck;
        }
        return outcome;
    }

private:
    struct State {
        WeakMemory memory;
        First first;
        Second second;
    };
    static std::string key(const State& state) {
        std::string out;
        state.memory.describe(out);
        state.first.describe(out);
        state.second.describe(out);
        return out;
    }

    State start_;
    std::set<std::string> seen_;
};

}  // namespace nexar::testing
