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

/// Throws a nexar::Error with what errno says.
[[noreturn]] void fail_system(std::string_view doing);

/// One end of the way on which the two processes of the benchmark tell each other what to do. Whole
/// messages, in order. Every failure throws a nexar::Error: nothing waits for a process that died.
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

    /// Throws Errc::timed_out when nothing came in time, Errc::link_closed when the other process
    /// ended, and what send_failure() said.
    template <class T>
    T receive(Duration limit = kPatience) {
        static_assert(std::is_trivially_copyable_v<T>);
        T message{};
        receive_bytes(std::as_writable_bytes(std::span(&message, 1)), limit);
        return message;
    }

    /// What the other process told with send_failure(), or that it ended; empty when it lives and
    /// has no complaint. Does not wait.
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
