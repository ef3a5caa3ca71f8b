#include "runtime/node_list.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "harness.hpp"

/// Parses the input as a Slurm host list, and as Slurm task counts.
namespace nexar::fuzz {

bool accepts_node_list(std::span<const std::byte> input) {
    const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
    if (const auto tasks = tasks_on_node(text, 2); tasks) {
        NEXAR_ASSERT(tasks_on_node(text, 0).has_value() && tasks_on_node(text, 1).has_value(),
                     "a count for the third node implies counts for those before it");
    }
    const auto list = parse_node_list(text);
    if (!list) {
        NEXAR_ASSERT(list.error().code() == Errc::malformed);
        NEXAR_ASSERT(!first_unprintable(list.error().cause()));
        return false;
    }
    NEXAR_ASSERT(list->count >= 1 && list->count <= NodeList::kMaxHosts);
    NEXAR_ASSERT(!list->first.empty() && list->first.size() <= NodeList::kMaxHostBytes);
    const auto alone = parse_node_list(list->first);
    NEXAR_ASSERT(alone.has_value() && alone->count == 1 && alone->first == list->first,
                 "a host must parse as a list of one host");
    return true;
}

}  // namespace nexar::fuzz
