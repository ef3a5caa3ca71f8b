#include "run/output_stream.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace nexar::run {

void OutputStream::write_some() noexcept {
    // A pipe that is ready accepts this much without blocking the writer.
    constexpr std::size_t kAtOnce = 4096;
    pollfd ready{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    while (!lost_ && has_pending()) {
        const std::size_t size = std::min(kAtOnce, pending_.size() - written_);
        const ssize_t n = ::write(descriptor_, pending_.data() + written_, size);
        if (n >= 0) written_ += static_cast<std::size_t>(n);
        if (n < 0 && errno != EINTR && errno != EAGAIN) lost_ = true;
        if (::poll(&ready, 1, 0) != 1) break;
    }
    if (lost_ || written_ == pending_.size()) {
        pending_.clear();
        written_ = 0;
    } else if (written_ >= kFull) {
        pending_.erase(0, written_);
        written_ = 0;
    }
}

}  // namespace nexar::run
