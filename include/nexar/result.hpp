#pragma once

#include <nexar/error.hpp>
#include <type_traits>
#include <utility>
#include <variant>

namespace nexar {

namespace detail {
/// Prints the error and aborts: the program used the value of a failed Result without checking it.
[[noreturn]] NEXAR_EXPORT void no_value(const Error& error) noexcept;
[[noreturn]] NEXAR_EXPORT void no_error() noexcept;
}  // namespace detail

/// A value, or the Error that prevented it. Dereferencing a failed Result is a bug and aborts;
/// value() throws the Error.
template <class T>
class [[nodiscard]] Result {
    static_assert(!std::is_reference_v<T> && !std::is_same_v<std::remove_cv_t<T>, Error>);

public:
    using value_type = T;

    // Implicit on purpose: functions write `return value;` and `return Error(...)`.
    Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)  // NOLINT(google-explicit-*)
        : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) noexcept  // NOLINT(google-explicit-*)
        : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& operator*() & noexcept { return checked(); }
    const T& operator*() const& noexcept { return const_cast<Result*>(this)->checked(); }
    T&& operator*() && noexcept { return std::move(checked()); }
    T* operator->() noexcept { return &checked(); }
    const T* operator->() const noexcept { return &const_cast<Result*>(this)->checked(); }

    const T& value() const& { return thrown_or(*this); }
    T&& value() && { return std::move(const_cast<T&>(thrown_or(*this))); }

    const Error& error() const noexcept {
        if (has_value()) detail::no_error();
        return *std::get_if<1>(&state_);
    }

private:
    T& checked() noexcept {
        if (!has_value()) detail::no_value(*std::get_if<1>(&state_));
        return *std::get_if<0>(&state_);
    }
    static const T& thrown_or(const Result& r) {
        if (!r.has_value()) throw Error(r.error());
        return *std::get_if<0>(&r.state_);
    }

    std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;

    Result() noexcept = default;
    Result(Error error) noexcept  // NOLINT(google-explicit-*)
        : error_(std::move(error)) {}

    bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }

    void value() const {
        if (error_) throw Error(*error_);
    }

    const Error& error() const noexcept {
        if (!error_) detail::no_error();
        return *error_;
    }

private:
    std::optional<Error> error_;
};

}  // namespace nexar
