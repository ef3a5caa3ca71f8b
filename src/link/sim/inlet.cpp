#include "link/sim/inlet.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace nexar::sim {

void Inlet::offer(ByteQueue& bytes, Random& random, double direct) {
    // The sink may call the link, which only enqueues, except that drop() detaches the sink.
    while (sink_ != nullptr && !pending_ && taken_ < arrived_) {
        const port::ConstBytes piece = bytes.view(taken_, arrived_);
        const port::Bytes room = direct > 0 && random.chance(direct)
                                     ? sink_->region(taken_, piece.size())
                                     : port::Bytes();
        if (!room.empty()) {
            const std::size_t placed = std::min(room.size(), piece.size());
            std::memcpy(room.data(), piece.data(), placed);
            taken_ += placed;
            continue;
        }
        const std::size_t taken = sink_->write(taken_, piece);
        NEXAR_ASSERT(taken <= piece.size(), "a sink cannot take more than it was given");
        taken_ += taken;
        pending_ = taken < piece.size();
    }
}

}  // namespace nexar::sim
