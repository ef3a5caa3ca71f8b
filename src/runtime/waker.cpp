#include "runtime/waker.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"

namespace nexar::runtime {

Result<Waker> Waker::make() {
    Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (event.number() < 0) {
        return Error(Errc::bad_config,
                     fmt::format("cannot create an eventfd to wake the progress loop: {}; raise "
                                 "the limit on open files (ulimit -n)",
                                 std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
    }
    return Waker(std::move(event));
}

void Waker::signal() const noexcept {
    const std::uint64_t one = 1;
    const auto written = ::write(event_.number(), &one, sizeof one);
    // EAGAIN: 2^64 - 2 signals are pending; the descriptor is readable, which is all that matters.
    NEXAR_ASSERT(written == sizeof one || errno == EAGAIN,
                 "writing to an eventfd fails only with EAGAIN");
}

void Waker::drain() const noexcept {
    std::uint64_t signals = 0;
    const auto got = ::read(event_.number(), &signals, sizeof signals);
    NEXAR_ASSERT(got == sizeof signals || errno == EAGAIN,
                 "reading from an eventfd fails only with EAGAIN");
}

}  // namespace nexar::runtime
