#include "unit/schedule/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace nexar::schedule::testing {

namespace {

constexpr std::uint64_t kModulus = 2147483647;  // products fit into 64 bits

std::uint64_t factor(std::uint64_t map) {
    return map >> 32U;
}
std::uint64_t offset(std::uint64_t map) {
    return map & 0xffffffffU;
}

}  // namespace

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return a + b;
}

std::uint64_t compose(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t both = factor(a) * factor(b) % kModulus;
    return both << 32U | (factor(a) * offset(b) + offset(a)) % kModulus;
}

std::uint64_t element(std::uint32_t rank, std::uint64_t index) {
    SplitMix64 mix(index * 4096 + rank);
    const std::uint64_t a = 1 + mix.next() % (kModulus - 1);
    return a << 32U | mix.next() % kModulus;
}

Interpreter::Interpreter(const std::vector<Request>& requests,
                         const std::vector<Schedule>& schedules, Operator op, Random& random,
                         Medium medium)
    : schedules_(schedules), op_(op), random_(random), medium_(medium), memory_(schedules.size()) {
    for (std::uint32_t rank = 0; rank < schedules.size(); ++rank) {
        const Slice in = input_of(requests[rank]);
        auto& [input, output, scratch] = memory_[rank];
        input.resize(in.space == Space::input ? in.count : 0);
        output.resize(output_of(requests[rank]).count);
        scratch.resize(schedules[rank].scratch);
        for (auto* buffer : {&input, &output, &scratch})
            for (std::uint64_t& e : *buffer) e = random.next();
        auto& holder = memory_[rank].at(static_cast<std::size_t>(in.space));
        for (std::uint64_t i = 0; i < in.count; ++i) holder[in.offset + i] = element(rank, i);
        first_.emplace_back();
        for (std::uint32_t i = 0; i < schedules[rank].steps.size(); ++i) {
            first_.back().push_back(pieces_.size());
            for (std::uint64_t k = 0; k < schedules[rank].steps[i].segments(); ++k)
                pieces_.push_back({rank, i, k, State::waiting, {}, {}});
        }
    }
}

std::string Interpreter::run() {
    std::vector<std::size_t> live(pieces_.size());
    for (std::size_t i = 0; i < live.size(); ++i) live[i] = i;
    while (!live.empty() && violation_.empty()) {
        // Starting at a random position, advance the first piece that can make progress.
        const std::size_t begin = random_.below(live.size());
        std::size_t tried = 0;
        while (tried < live.size() && !advance(pieces_[live[(begin + tried) % live.size()]]))
            ++tried;
        if (tried == live.size())
            return fmt::format("deadlock with {} pieces left, among them {} of rank {}", tried,
                               to_text(step(pieces_[live[0]])), pieces_[live[0]].rank);
        const std::size_t at = (begin + tried) % live.size();
        const Piece& moved = pieces_[live[at]];
        const State last = step(moved).kind == Kind::send ? State::released : State::finished;
        if (moved.state == last) {
            live[at] = live.back();
            live.pop_back();
        }
    }
    return violation_;
}

Interpreter::Piece& Interpreter::other_end(const Piece& p) {
    const Step& s = step(p);
    const auto& steps = schedules_[s.peer].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i)
        if (is_message(steps[i].kind) && receives(steps[i].kind) != receives(s.kind) &&
            steps[i].peer == p.rank && steps[i].message == s.message)
            return piece(s.peer, i, p.number);
    throw std::logic_error("a message has no other end");
}

Slice Interpreter::cut(const Piece& p, const Slice& whole) const {
    const std::uint64_t segment = step(p).segment;
    if (segment == 0) return whole;
    const std::uint64_t begin = p.number * segment;
    return part(whole, begin, std::min(segment, whole.count - begin));
}

Interpreter::Elements Interpreter::load(const Piece& p, const Slice& whole) const {
    const Slice slice = cut(p, whole);
    const auto& buffer = memory_[p.rank].at(static_cast<std::size_t>(slice.space));
    const auto begin = buffer.begin() + static_cast<std::ptrdiff_t>(slice.offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(slice.count)};
}

void Interpreter::store(const Piece& p, const Slice& whole, const Elements& elements) {
    const Slice slice = cut(p, whole);
    auto& buffer = memory_[p.rank].at(static_cast<std::size_t>(slice.space));
    std::copy(elements.begin(), elements.end(),
              buffer.begin() + static_cast<std::ptrdiff_t>(slice.offset));
}

bool Interpreter::may_start(const Piece& p) {
    if (p.number > 0 && piece(p.rank, p.step, p.number - 1).state == State::waiting) return false;
    for (const Dependency& d : schedules_[p.rank].dependencies_of(p.step)) {
        const State wanted = d.event == Milestone::finished ? State::finished : State::released;
        const std::uint64_t pieces = schedules_[p.rank].steps[d.step].segments();
        for (std::uint64_t k = d.pipelined ? p.number : 0; k < pieces; ++k) {
            if (piece(p.rank, d.step, k).state < wanted) return false;
            if (d.pipelined) break;
        }
    }
    return true;
}

bool Interpreter::advance(Piece& p) {
    switch (p.state) {
        case State::waiting:
            if (!may_start(p)) return false;
            start(p);
            return true;
        case State::started:
            if (waits_for_other_end(step(p).kind) && other_end(p).state == State::waiting)
                return false;
            finish(p);
            return true;
        case State::finished:
            expect_unchanged(p, step(p).from, p.from);
            p.state = State::released;
            return true;
        case State::released:
            break;
    }
    return false;
}

void Interpreter::start(Piece& p) {
    const Step& s = step(p);
    p.state = State::started;
    if (reads_from(s.kind)) p.from = load(p, s.from);
    if (folds(s.kind)) p.local = load(p, s.local);
    if (!writes_into(s.kind)) return;
    if (s.into == s.from || (folds(s.kind) && s.into == s.local)) return;
    Elements garbage(cut(p, s.into).count);
    for (std::uint64_t& e : garbage) e = random_.next();
    store(p, s.into, garbage);
}

void Interpreter::finish(Piece& p) {
    const Step& s = step(p);
    p.state = State::finished;
    if (reads_from(s.kind)) expect_unchanged(p, s.from, p.from);
    if (folds(s.kind)) expect_unchanged(p, s.local, p.local);
    if (s.kind == Kind::send) return;
    Elements result = receives(s.kind) ? other_end(p).from : p.from;
    for (std::size_t i = 0; folds(s.kind) && i < result.size(); ++i)
        result[i] =
            s.side == compute::Side::left ? op_(result[i], p.local[i]) : op_(p.local[i], result[i]);
    store(p, s.into, result);
}

void Interpreter::expect_unchanged(const Piece& p, const Slice& whole, const Elements& before) {
    if (load(p, whole) == before) return;
    violation_ = fmt::format("{} changed while rank {} was using it in step {}", to_text(whole),
                             p.rank, p.step);
}

}  // namespace nexar::schedule::testing
