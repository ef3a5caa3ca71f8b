#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace nexar::run {

/// Splits the output of a process into whole lines and prefixes each, so that the lines of several
/// processes do not mix. Holds at most `longest` bytes; a longer line is split into several.
class LinePrefixer {
public:
    static constexpr std::size_t kLongest = std::size_t{1} << 16;

    /// Returns true if it consumed the line, which is then dropped.
    using Filter = std::function<bool(std::string_view line)>;

    explicit LinePrefixer(std::string prefix, std::size_t longest = kLongest)
        : prefix_(std::move(prefix)), longest_(longest) {}

    /// From now on `filter` sees every line first, without prefix and line end.
    void set_filter(Filter filter) { filter_ = std::move(filter); }

    void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

    /// Appends the lines that end within `bytes` to `out`; keeps an incomplete line.
    void take(std::string_view bytes, std::string& out);
    /// Appends an incomplete line, with a line end.
    void finish(std::string& out);

private:
    void put_line(std::string_view end_of_line, std::string& out);

    std::string prefix_;
    std::size_t longest_;
    Filter filter_{};
    std::string line_;
};

}  // namespace nexar::run
