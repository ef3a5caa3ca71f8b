#include "run/line_prefixer.hpp"

#include <algorithm>

namespace nexar::run {

void LinePrefixer::take(std::string_view bytes, std::string& out) {
    while (!bytes.empty()) {
        const std::string_view line = bytes.substr(0, bytes.find('\n'));
        const std::size_t fits = std::min(line.size(), longest_ - line_.size());
        if (fits == line.size() && line.size() < bytes.size()) {
            put_line(line, out);
            bytes.remove_prefix(line.size() + 1);
            continue;
        }
        line_ += bytes.substr(0, fits);
        bytes.remove_prefix(fits);
        // Only when more bytes follow: the next byte may end the line.
        if (line_.size() == longest_ && !bytes.empty()) put_line("", out);
    }
}

void LinePrefixer::finish(std::string& out) {
    if (!line_.empty()) put_line("", out);
}

void LinePrefixer::put_line(std::string_view end_of_line, std::string& out) {
    if (filter_) {
        line_ += end_of_line;
        end_of_line = {};
    }
    if (!filter_ || !filter_(line_)) {
        out += prefix_;
        out += line_;
        out += end_of_line;
        out += '\n';
    }
    line_.clear();
}

}  // namespace nexar::run
