#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "timing.hpp"

namespace nexar::bench {

/// Throws a nexar::Error "cannot DOING: ..." with the text of errno.
[[noreturn]] void fail_system(std::string_view doing);

/// One end of the control channel between the two processes of the benchmark. Carries whole
/// messages in order. Every failure throws a nexar::Error, so no process waits for one that has
/// died.
class Control {
public:
    static std::pair<Control, Control> make_pair();

    Control(Control&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Control& operator=(Control&&) = delete;
    ~Control();

    template <class T>
    void send(const T& message) {
        static_assert(std::is_trivially_copyable_v<T>);
        send_bytes(Kind::message, std::as_bytes(std::span(&message, 1)));
    }

    /// Throws Errc::timed_out if nothing arrived in time, and Errc::link_closed if the other
    /// process ended or reported an error with send_failure().
    template <class T>
    T receive(Duration limit = kPatience) {
        static_assert(std::is_trivially_copyable_v<T>);
        T message{};
        receive_bytes(std::as_writable_bytes(std::span(&message, 1)), limit);
        return message;
    }

    /// The error that the other process reported with send_failure(), or that it ended; empty if it
    /// lives and has reported none. Does not wait.
    std::string last_words();

    /// Ends the other process's wait with an error.
    void send_failure(std::string_view what) noexcept;

private:
    enum class Kind : std::uint8_t { message, failure };

    explicit Control(int descriptor) noexcept : descriptor_(descriptor) {}
    void send_bytes(Kind kind, std::span<const std::byte> bytes);
    std::vector<std::byte> receive_packet(Duration limit);
    void receive_bytes(std::span<std::byte> bytes, Duration limit);

    int descriptor_;
};

}  // namespace nexar::bench
