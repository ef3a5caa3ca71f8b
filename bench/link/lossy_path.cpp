#include "lossy_path.hpp"

#include <algorithm>

namespace nexar::bench {

void LossyPath::decide(const quic::PacketBatch& batch) {
    runs_.clear();
    sent_runs_ = 0;
    for (std::size_t at = 0; at < batch.bytes.size(); at += batch.segment_bytes) {
        if (random_.chance(probability_)) {
            ++lost_;
            continue;
        }
        const std::size_t end = std::min(at + batch.segment_bytes, batch.bytes.size());
        if (!runs_.empty() && runs_.back().end == at) {
            runs_.back().end = end;
        } else {
            runs_.push_back({.begin = at, .end = end});
        }
    }
    decided_ = true;
}

quic::PacketPath::Sent LossyPath::send(const quic::PacketBatch& batch) {
    if (!decided_) decide(batch);
    for (; sent_runs_ < runs_.size(); ++sent_runs_) {
        const Run& run = runs_[sent_runs_];
        quic::PacketBatch part = batch;
        part.bytes = batch.bytes.subspan(run.begin, run.end - run.begin);
        if (out_->send(part) == Sent::blocked) return Sent::blocked;
    }
    decided_ = false;
    return Sent::done;
}

}  // namespace nexar::bench
