#pragma once

#include <cstdint>
#include <nexar/log.hpp>
#include <string>
#include <vector>

namespace nexar {

/// Captures log lines during its lifetime. Call lines() only while no thread logs.
class LogCapture {
public:
    struct Line {
        LogLevel level = LogLevel::off;
        std::string text;
        std::uint64_t suppressed = 0;
        std::string file;
        int line = 0;
    };

    LogCapture() {
        set_log_sink([this](const LogRecord& record) {
            lines_.push_back({.level = record.level,
                              .text = std::string(record.text),
                              .suppressed = record.suppressed,
                              .file = std::string(record.file),
                              .line = record.line});
        });
    }
    ~LogCapture() { set_log_sink({}); }
    LogCapture(const LogCapture&) = delete;
    LogCapture& operator=(const LogCapture&) = delete;

    const std::vector<Line>& lines() const { return lines_; }

private:
    std::vector<Line> lines_;
};

}  // namespace nexar
