#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace nexar::chaos {

/// The log of one process: an append-only file with one event per line, each written at once, so
/// that a killed process leaves everything that it had done. checker.hpp lists the events. Any
/// thread may write.
class Journal {
public:
    explicit Journal(const std::string& path);
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    ~Journal();

    template <class... Args>
    void note(fmt::format_string<Args...> format, Args&&... args) {
        write(fmt::format(format, std::forward<Args>(args)...), false);
    }
    /// The same; also writes the line to standard output, where the test reads it.
    template <class... Args>
    void tell(fmt::format_string<Args...> format, Args&&... args) {
        write(fmt::format(format, std::forward<Args>(args)...), true);
    }

private:
    void write(std::string line, bool told);

    int descriptor_;
};

}  // namespace nexar::chaos
