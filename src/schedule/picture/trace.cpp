#include "schedule/picture/trace.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "schedule/picture/rounds.hpp"

namespace nexar::schedule {

namespace {

/// What one element of a buffer holds: element `index` of the vector, folded over `contributors`.
/// Nothing was written where there are none.
struct Element {
    std::uint64_t index = 0;
    std::uint32_t contributors = 0;
};

using Elements = std::vector<Element>;

class Tracer {
public:
    Tracer(const Algorithm& algorithm, std::uint32_t world, std::uint32_t root, const Links& links)
        : algorithm_(algorithm),
          requests_(requests(algorithm, world, root, links)),
          ranks_(all()),
          rounds_(ranks_),
          buffers_(world),
          in_flight_(world),
          done_(world) {
        trace_.world = world;
        trace_.rounds = rounds_.last();
        const std::uint64_t each = requests_.front().chunks.total();
        vector_ = algorithm.operation == Collective::all_to_all ? world * each : each;
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            in_flight_[rank].resize(ranks_[rank].steps.size());
            done_[rank].resize(ranks_[rank].steps.size());
            for (auto& buffer : buffers_[rank]) buffer.resize(std::max(each, ranks_[rank].scratch));
            fill(rank);
        }
    }

    Trace run() {
        std::vector<Held> held{snapshot()};
        for (std::uint32_t round = 0; round <= trace_.rounds; ++round) {
            while (advance(round)) {
            }
            if (round > 0) held.push_back(snapshot());
        }
        divide(held);
        std::ranges::sort(trace_.messages, {}, [](const TracedMessage& message) {
            return std::tuple(message.round, message.from, message.send);
        });
        return std::move(trace_);
    }

private:
    /// Per rank and element of the vector: the contributors of its most complete copy.
    using Held = std::vector<std::vector<std::uint32_t>>;

    /// Requests over so few elements that each can be followed, and as many as every algorithm
    /// divides evenly: by the ranks, and by the groups of the canonical tree.
    static std::vector<Request> requests(const Algorithm& algorithm, std::uint32_t world,
                                         std::uint32_t root, const Links& links) {
        NEXAR_ASSERT(world <= kMostTraced && !algorithm.traits.needs_tree);
        std::uint64_t count = std::uint64_t{world} * std::bit_floor(world);
        if (algorithm.operation == Collective::all_to_all) count = world;
        if (algorithm.operation == Collective::barrier) count = 0;
        Request request;
        request.operation = algorithm.operation;
        request.world = world;
        request.root = root;
        request.chunks = Chunks::even(count, world);
        request.receives = request.chunks;
        request.links = links;
        std::vector<Request> all(world, request);
        for (std::uint32_t rank = 0; rank < world; ++rank) all[rank].rank = rank;
        return all;
    }

    std::vector<Schedule> all() const {
        std::vector<Schedule> all;
        all.reserve(requests_.size());
        for (const Request& request : requests_) all.push_back(algorithm_.build(request));
        return all;
    }

    void fill(std::uint32_t rank) {
        const Request& request = requests_[rank];
        const Slice input = input_of(request);
        std::uint64_t first = 0;
        if (request.operation == Collective::all_gather || request.operation == Collective::gather)
            first = request.chunks.offset(rank);
        if (request.operation == Collective::all_to_all) first = rank * request.chunks.total();
        Elements elements;
        for (std::uint64_t i = 0; i < input.count; ++i) elements.push_back({first + i, 1U << rank});
        write(rank, input, elements);
    }

    Elements read(std::uint32_t rank, const Slice& slice) const {
        const Elements& buffer = buffers_[rank].at(static_cast<std::size_t>(slice.space));
        const auto begin = buffer.begin() + static_cast<std::ptrdiff_t>(slice.offset);
        return {begin, begin + static_cast<std::ptrdiff_t>(slice.count)};
    }

    void write(std::uint32_t rank, const Slice& slice, const Elements& elements) {
        Elements& buffer = buffers_[rank].at(static_cast<std::size_t>(slice.space));
        std::ranges::copy(elements, buffer.begin() + static_cast<std::ptrdiff_t>(slice.offset));
    }

    /// Runs the steps of the round that are ready; returns false when none was.
    bool advance(std::uint32_t round) {
        bool ran = false;
        for (std::uint32_t rank = 0; rank < trace_.world; ++rank) {
            for (std::uint32_t i = 0; i < ranks_[rank].steps.size(); ++i) {
                if (done_[rank][i] || rounds_.of(rank, i) != round || !is_ready(rank, i)) continue;
                execute(rank, i);
                done_[rank][i] = true;
                ran = true;
            }
        }
        return ran;
    }

    bool is_ready(std::uint32_t rank, std::uint32_t i) const {
        const Step& step = ranks_[rank].steps[i];
        if (receives(step.kind) && !done_[step.peer][rounds_.other_end(rank, i)]) return false;
        return std::ranges::all_of(ranks_[rank].dependencies_of(i), [&](const Dependency& before) {
            return done_[rank][before.step];
        });
    }

    void execute(std::uint32_t rank, std::uint32_t i) {
        const Step& step = ranks_[rank].steps[i];
        Elements elements = receives(step.kind) ? in_flight_[step.peer][rounds_.other_end(rank, i)]
                                                : read(rank, step.from);
        if (step.kind == Kind::send) {
            in_flight_[rank][i] = std::move(elements);
            return;
        }
        if (receives(step.kind)) record(rank, i, elements);
        if (folds(step.kind)) {
            const Elements local = read(rank, step.local);
            for (std::size_t k = 0; k < elements.size(); ++k)
                elements[k].contributors |= local[k].contributors;
        }
        write(rank, step.into, elements);
    }

    /// For now `pieces` are elements of the vector; divide() joins them.
    void record(std::uint32_t rank, std::uint32_t i, const Elements& elements) {
        TracedMessage message{.from = ranks_[rank].steps[i].peer,
                              .to = rank,
                              .round = rounds_.of(rank, i),
                              .send = rounds_.other_end(rank, i),
                              .folded = is_folded(rank, i)};
        for (const Element& element : elements) {
            message.pieces.push_back(static_cast<std::uint32_t>(element.index));
            message.contributors |= element.contributors;
        }
        trace_.messages.push_back(std::move(message));
    }

    /// True if the receive itself folds, or a local fold waits for it.
    bool is_folded(std::uint32_t rank, std::uint32_t receive) const {
        const Schedule& schedule = ranks_[rank];
        if (folds(schedule.steps[receive].kind)) return true;
        for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
            if (schedule.steps[i].kind != Kind::reduce) continue;
            for (const Dependency& before : schedule.dependencies_of(i))
                if (before.step == receive) return true;
        }
        return false;
    }

    Held snapshot() const {
        Held held(trace_.world, std::vector<std::uint32_t>(vector_));
        for (std::uint32_t rank = 0; rank < trace_.world; ++rank) {
            for (const Elements& buffer : buffers_[rank]) {
                for (const Element& element : buffer) {
                    if (element.contributors == 0) continue;
                    std::uint32_t& most = held[rank][element.index];
                    most = std::max<std::uint32_t>(
                        most, static_cast<std::uint32_t>(std::popcount(element.contributors)));
                }
            }
        }
        return held;
    }

    /// Finds the largest pieces that always travel whole, and counts in these instead of elements.
    void divide(const std::vector<Held>& held) {
        trace_.pieces = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(vector_));
        for (const std::uint32_t pieces : {1U, std::bit_floor(trace_.world), trace_.world}) {
            if (vector_ == 0 || vector_ % pieces != 0 || !travel_whole(vector_ / pieces)) continue;
            trace_.pieces = pieces;
            break;
        }
        const std::uint64_t size = std::max<std::uint64_t>(1, vector_ / trace_.pieces);
        for (TracedMessage& message : trace_.messages) {
            std::set<std::uint32_t> pieces;
            for (const std::uint32_t element : message.pieces)
                pieces.insert(static_cast<std::uint32_t>(element / size));
            message.pieces.assign(pieces.begin(), pieces.end());
        }
        for (const Held& round : held) {
            auto& ranks = trace_.held.emplace_back(trace_.world);
            for (std::uint32_t rank = 0; rank < trace_.world; ++rank) {
                for (std::uint64_t first = 0; first < vector_; first += size) {
                    const auto begin = round[rank].begin() + static_cast<std::ptrdiff_t>(first);
                    ranks[rank].push_back(
                        *std::min_element(begin, begin + static_cast<std::ptrdiff_t>(size)));
                }
            }
        }
    }

    bool travel_whole(std::uint64_t size) const {
        return std::ranges::all_of(trace_.messages, [&](const TracedMessage& message) {
            std::vector<std::uint64_t> counts(vector_ / size);
            for (const std::uint32_t element : message.pieces) ++counts[element / size];
            return std::ranges::all_of(
                counts, [&](std::uint64_t count) { return count == 0 || count == size; });
        });
    }

    const Algorithm& algorithm_;
    std::vector<Request> requests_;
    std::vector<Schedule> ranks_;
    Rounds rounds_;
    Trace trace_;
    std::uint64_t vector_ = 0;                      // elements of the vector
    std::vector<std::array<Elements, 3>> buffers_;  // per rank and Space
    std::vector<std::vector<Elements>> in_flight_;  // per rank and send
    std::vector<std::vector<bool>> done_;           // per rank and step
};

}  // namespace

Trace trace(const Algorithm& algorithm, std::uint32_t world, std::uint32_t root,
            const Links& links) {
    return Tracer(algorithm, world, root, links).run();
}

}  // namespace nexar::schedule
