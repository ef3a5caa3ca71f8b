#include "runtime/join_variable.hpp"

#include <mutex>
#include <span>

#include "base/secret.hpp"
#include "runtime/config_sources.hpp"

namespace nexar {

namespace {

constexpr std::string_view kName = "NEXAR_JOIN";

/// The value of NEXAR_JOIN, for later calls of join().
struct Taken {
    std::mutex mutex{};
    std::optional<Secret> value{};
};

Taken& taken() {
    static Taken instance;
    return instance;
}

}  // namespace

std::optional<std::string> take_join_variable() {
    Taken& kept = taken();
    const std::lock_guard lock(kept.mutex);
    auto found = read_variables([](std::string_view name) { return name == kName; });
    if (!found.empty() && !found.front().value.empty()) {
        kept.value.emplace(std::as_bytes(std::span(found.front().value)));
        remove_secret_variable(kName);
        for (auto& one : found) wipe(std::as_writable_bytes(std::span(one.value)));
    }
    if (!kept.value) return std::nullopt;
    return kept.value->reveal([](std::span<const std::byte> bytes) {
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
}

bool join_variable_was_taken() {
    Taken& kept = taken();
    const std::lock_guard lock(kept.mutex);
    return kept.value.has_value();
}

}  // namespace nexar
