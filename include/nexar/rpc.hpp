#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <nexar/export.hpp>
#include <nexar/result.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <ranges>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace nexar {

namespace detail {
class CommunicatorBody;
class NodeBody;
class ServedFunction;
NEXAR_EXPORT std::uint16_t checked_number(std::int64_t number);
NEXAR_EXPORT std::string checked_name(std::string_view name);
}  // namespace detail

/// The bytes of an argument or a response.
using Payload = std::vector<std::byte>;

/// Callers often need only the effect of a call and ignore its response.
template <>
inline constexpr bool detail::is_ignorable<Payload> = true;

/// Identifies a function by a number from 0 to 65535, or by a name: printable text of 1 to 64
/// bytes, which is sent unchanged. Numbers and names are independent.
class FunctionName {
public:
    // Implicit on purpose: `node.call(1, "sum", data)`, `node.call(1, 7, data)`.
    template <std::integral Number>
    FunctionName(Number number)  // NOLINT(google-explicit-*)
        : number_(detail::checked_number(static_cast<std::int64_t>(number))) {}
    template <std::convertible_to<std::string_view> Text>
    FunctionName(const Text& name)  // NOLINT(google-explicit-*)
        : name_(detail::checked_name(name)) {}

    std::uint16_t number() const noexcept { return number_; }
    /// Empty if the function is identified by its number.
    const std::string& name() const noexcept { return name_; }

private:
    std::uint16_t number_ = 0;
    std::string name_{};
};

/// Resource limits for the calls that a node serves; see also docs/footguns.md.
struct RpcOptions {
    std::size_t max_request = std::size_t{64} << 20U;
    std::size_t max_response = std::size_t{64} << 20U;  // of this node's functions
    /// Calls of one caller that are in progress; further ones are rejected with Errc::overloaded.
    std::size_t max_in_flight = 1024;
    /// Bytes held for one caller: its requests, and the responses that it has not read.
    std::size_t max_held = std::size_t{64} << 20U;
    /// Maximum number of pool threads that run functions, not counting threads that wait for a
    /// Work. 0 means one per core, but at least 8. nexar starts them on demand.
    int threads = 0;
};

struct CallOptions {
    /// Waits until the called rank answers, leaves or is lost.
    static constexpr std::chrono::nanoseconds kNoTimeout = std::chrono::nanoseconds::max();

    /// Limit for the whole call. When it expires, the call fails with Errc::timed_out, and the
    /// function's stop token is triggered.
    std::chrono::nanoseconds timeout = std::chrono::seconds(30);
    std::size_t max_response = std::size_t{64} << 20U;
};

/// A call as seen by the function. Valid until the function returns.
struct Call {
    int caller = 0;  // its rank in the cluster (Node::rank()), from its certificate
    std::span<const std::byte> argument{};
    /// Stop is requested when the caller cancels, dies or times out, when this node closes, or when
    /// the program aborts.
    std::stop_token stop{};
    std::optional<std::chrono::steady_clock::time_point> deadline{};
};

/// Runs the given function once, on a thread of its choice. If it destroys the function without
/// running it, the caller gets Errc::function_failed.
using Executor = std::function<void(std::function<void()>)>;

/// Runs a function on the thread that makes progress. This has the lowest latency, but the whole
/// node waits for the function, so it must never block and should take only a few microseconds.
NEXAR_EXPORT Executor inline_executor();

struct FunctionOptions {
    /// Called on the thread that makes progress, so it must not block. Empty selects the node's
    /// thread pool.
    Executor executor{};
    /// Members that may call the function, by their rank in the cluster; nullopt allows all.
    std::optional<std::vector<int>> callers{};
    std::size_t max_request = std::size_t{64} << 20U;
};

/// Serves a function during its lifetime. The destructor waits for running calls of the function
/// (except for a call that runs the destructor itself) and answers queued ones with
/// Errc::unknown_function.
class [[nodiscard]] Served {
public:
    Served() noexcept = default;
    explicit Served(std::shared_ptr<detail::ServedFunction> function) noexcept
        : function_(std::move(function)) {}
    Served(Served&&) noexcept = default;
    Served& operator=(Served&& other) noexcept {
        if (this != &other) {
            stop();
            function_ = std::move(other.function_);
        }
        return *this;
    }
    ~Served() { stop(); }

    NEXAR_EXPORT void stop() noexcept;

private:
    std::shared_ptr<detail::ServedFunction> function_{};
};

namespace detail {

/// Arguments up to this size are copied when the call starts; larger ones are read in place until
/// the call completes.
inline constexpr std::size_t kCopiedArgument = std::size_t{16} * 1024;

using RawFunction = std::function<Result<Payload>(const Call&)>;

template <class T>
concept Elements = std::ranges::contiguous_range<T> && std::ranges::sized_range<T> &&
                   std::is_trivially_copyable_v<std::ranges::range_value_t<T>>;
template <class T>
concept Plain = !Elements<T> && std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;
/// Owns its elements and can be resized.
template <class T>
concept Container = Elements<T> && requires(T t, std::size_t n) { t.resize(n); };
template <class T>
concept Viewed = Elements<T> && !Container<T> && std::ranges::view<T>;
template <class T>
concept Passable = (Elements<T> || Plain<T>) && !std::same_as<T, CallOptions>;
template <class T>
concept Returnable = std::is_void_v<T> || Container<T> || Plain<T>;

template <Elements T>
std::span<const std::byte> bytes_of(const T& values) noexcept {
    return std::as_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
}
template <Plain T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
    return std::as_bytes(std::span(&value, 1));
}

/// The size of a T in bytes: exactly `unit`, or any multiple of it.
struct Expected {
    std::size_t unit = 1;
    bool single = false;

    bool fits(std::size_t bytes) const noexcept {
        return single ? bytes == unit : bytes % unit == 0;
    }
};
template <class T>
constexpr Expected expected() noexcept {
    if constexpr (std::is_void_v<T>) {
        return {};
    } else if constexpr (Elements<T>) {
        return {.unit = sizeof(std::ranges::range_value_t<T>), .single = false};
    } else {
        return {.unit = sizeof(T), .single = true};
    }
}

/// Decodes bytes whose size fits T. A view refers to `bytes`.
template <class T>
T decoded(std::span<const std::byte> bytes) {
    if constexpr (Viewed<T>) {
        using Element = std::ranges::range_value_t<T>;
        return T(reinterpret_cast<const Element*>(bytes.data()), bytes.size() / sizeof(Element));
    } else if constexpr (Container<T>) {
        T values;
        values.resize(bytes.size() / sizeof(std::ranges::range_value_t<T>));
        if (!bytes.empty()) std::memcpy(std::ranges::data(values), bytes.data(), bytes.size());
        return values;
    } else {
        std::array<std::byte, sizeof(T)> copy;
        std::memcpy(copy.data(), bytes.data(), sizeof(T));
        return std::bit_cast<T>(copy);
    }
}

NEXAR_EXPORT Error wrong_argument(std::size_t bytes, const Expected& expected);

/// Result and parameters of a function object.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
    using Result = R;
    static constexpr std::size_t kCount = sizeof...(A);
    template <std::size_t I>
    using Parameter = std::remove_cvref_t<std::tuple_element_t<I, std::tuple<A...>>>;
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};

template <class Invoke>
Result<Payload> answered(Invoke invoke) {
    using R = std::invoke_result_t<Invoke>;
    static_assert(Returnable<R>,
                  "nexar: a function must return void, a trivially copyable value, or a "
                  "container of such values");
    if constexpr (std::is_void_v<R>) {
        invoke();
        return Payload{};
    } else if constexpr (std::same_as<R, Payload>) {
        return invoke();
    } else {
        const R value = invoke();
        const auto bytes = bytes_of(value);
        return Payload(bytes.begin(), bytes.end());
    }
}

/// Wraps `invoke(call, T)` as a function over bytes.
template <class T, class Invoke>
RawFunction raw_with(Invoke invoke) {
    static_assert(Passable<T>,
                  "nexar: an argument must be a trivially copyable value, or a container or view "
                  "of such values");
    return [invoke](const Call& call) mutable -> Result<Payload> {
        if (!expected<T>().fits(call.argument.size())) {
            return wrong_argument(call.argument.size(), expected<T>());
        }
        return answered([&] { return invoke(call, decoded<T>(call.argument)); });
    };
}

/// Wraps `function`, which is R(), R(const Call&), R(T) or R(const Call&, T), as a function over
/// bytes.
template <class F>
RawFunction raw(F function) {
    using Shape = Signature<F>;
    if constexpr (Shape::kCount == 0) {
        return [function](const Call&) mutable { return answered(function); };
    } else if constexpr (Shape::kCount == 2) {
        using T = typename Shape::template Parameter<1>;
        return raw_with<T>([function](const Call& call, T&& argument) mutable {
            return function(call, std::move(argument));
        });
    } else if constexpr (std::same_as<typename Shape::template Parameter<0>, Call>) {
        return [function](const Call& call) mutable {
            return answered([&] { return function(call); });
        };
    } else {
        using T = typename Shape::template Parameter<0>;
        return raw_with<T>([function](const Call&, T&& argument) mutable {
            return function(std::move(argument));
        });
    }
}

struct Argument {
    std::span<const std::byte> bytes{};
    std::shared_ptr<const void> keep{};  // owns the bytes; may be null
};

template <class A>
Argument argument_of(A&& value) {
    const auto bytes = bytes_of(value);
    using Kept = std::remove_cvref_t<A>;
    if constexpr (!std::is_lvalue_reference_v<A> && !Viewed<Kept>) {
        if (bytes.size() > kCopiedArgument) {
            auto kept = std::make_shared<const Kept>(std::forward<A>(value));
            return {.bytes = bytes_of(*kept), .keep = kept};
        }
    }
    return {.bytes = bytes, .keep = {}};
}

NEXAR_EXPORT TaskOwner start_call(const std::shared_ptr<NodeBody>& node, int rank,
                                  const FunctionName& function, const Argument& argument,
                                  const CallOptions& options, const Expected& expected);
NEXAR_EXPORT TaskOwner start_call(const std::shared_ptr<CommunicatorBody>& communicator, int rank,
                                  const FunctionName& function, const Argument& argument,
                                  const CallOptions& options, const Expected& expected);
NEXAR_EXPORT Served serve(const std::shared_ptr<NodeBody>& node, const FunctionName& name,
                          RawFunction function, const FunctionOptions& options);
/// The response of a call that succeeded.
NEXAR_EXPORT Payload response(Task& task);

template <class T>
Result<T> take_response(Task& task) {
    if constexpr (std::is_void_v<T>) {
        return {};
    } else if constexpr (std::same_as<T, Payload>) {
        return response(task);
    } else {
        return decoded<T>(response(task));
    }
}

}  // namespace detail

}  // namespace nexar
