#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace nexar::run {

/// Makes whole lines of what a process writes, each behind a prefix, so that lines of several
/// processes can be written one after the other without being mixed. Keeps at most `longest` bytes:
/// a line that is longer goes on in a line of its own.
class LinePrefixer {
public:
    static constexpr std::size_t kLongest = std::size_t{1} << 16;

    /// Returns whether it took the line, which is then not passed on.
    using Filter = std::function<bool(std::string_view line)>;

    explicit LinePrefixer(std::string prefix, std::size_t longest = kLongest)
        : prefix_(std::move(prefix)), longest_(longest) {}

    /// From now on every line is shown to `filter` first, without its prefix and its end.
    void set_filter(Filter filter) { filter_ = std::move(filter); }

    /// Appends the lines that end in `bytes` to `out`; keeps what has no end yet.
    void take(std::string_view bytes, std::string& out);
    /// Appends what is left, with the end of line that it lacks.
    void finish(std::string& out);

private:
    void put_line(std::string_view end_of_line, std::string& out);

    std::string prefix_;
    std::size_t longest_;
    Filter filter_{};
    std::string line_;
};

}  // namespace nexar::run
