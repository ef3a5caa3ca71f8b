#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nexar::run {

/// Writes lines to a descriptor of the launcher and buffers what it cannot write yet. The
/// descriptor stays blocking, because other processes may share it.
class OutputStream {
public:
    /// With this many bytes pending, callers should add no more until some are written.
    static constexpr std::size_t kFull = std::size_t{1} << 20;

    explicit OutputStream(int descriptor) noexcept : descriptor_(descriptor) {}

    int descriptor() const noexcept { return descriptor_; }
    bool is_full() const noexcept { return pending_.size() - written_ >= kFull; }
    bool has_pending() const noexcept { return written_ < pending_.size(); }
    /// True when the reader is gone; from then on all output is dropped.
    bool lost() const noexcept { return lost_; }

    /// The buffer, for callers that append directly.
    std::string& pending() noexcept { return pending_; }
    void add(std::string_view text) { pending_ += text; }

    /// Writes some of the pending bytes. Does not block if the descriptor is ready.
    void write_some() noexcept;

private:
    int descriptor_;
    std::string pending_;
    std::size_t written_ = 0;
    bool lost_ = false;
};

}  // namespace nexar::run
