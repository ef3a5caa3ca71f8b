#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nexar::run {

/// Where lines go: a descriptor of the launcher that others may share, so that it is not made
/// non-blocking. Holds what could not be written yet.
class OutputStream {
public:
    /// From here on nothing more should be added before some is written.
    static constexpr std::size_t kFull = std::size_t{1} << 20;

    explicit OutputStream(int descriptor) noexcept : descriptor_(descriptor) {}

    int descriptor() const noexcept { return descriptor_; }
    bool is_full() const noexcept { return pending_.size() - written_ >= kFull; }
    bool has_pending() const noexcept { return written_ < pending_.size(); }
    /// Nobody reads what is written: all is dropped from now on.
    bool lost() const noexcept { return lost_; }

    /// To append to.
    std::string& pending() noexcept { return pending_; }
    void add(std::string_view text) { pending_ += text; }

    /// Writes some of it. To be called when the descriptor is ready; then it does not wait.
    void write_some() noexcept;

private:
    int descriptor_;
    std::string pending_;
    std::size_t written_ = 0;
    bool lost_ = false;
};

}  // namespace nexar::run
