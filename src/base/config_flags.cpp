#include "base/config_flags.hpp"

#include <string_view>
#include <utility>

namespace nexar {

SplitArguments split_arguments(std::span<const std::string> arguments) {
    SplitArguments split;
    bool ended = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        ended = ended || argument == "--";
        if (ended || !argument.starts_with("--nexar-")) {
            split.rest.push_back(i);
            continue;
        }
        ConfigFlag flag;
        const std::size_t equals = argument.find('=');
        flag.name = argument.substr(0, equals);
        if (equals != std::string_view::npos) {
            flag.value = argument.substr(equals + 1);
        } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
            flag.value = arguments[++i];
        }
        split.flags.push_back(std::move(flag));
    }
    return split;
}

}  // namespace nexar
