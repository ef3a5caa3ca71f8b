#include "process/chaos/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>

namespace nexar::chaos {

Journal::Journal(const std::string& path)
    : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) throw std::runtime_error("cannot write to " + path);
}

Journal::~Journal() {
    ::close(descriptor_);
}

void Journal::write(std::string line, bool told) {
    line += '\n';
    const auto bytes = static_cast<ssize_t>(line.size());
    if (::write(descriptor_, line.data(), line.size()) != bytes) ::_exit(5);
    if (told && ::write(STDOUT_FILENO, line.data(), line.size()) != bytes) ::_exit(5);
}

}  // namespace nexar::chaos
