#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "base/setting.hpp"

namespace nexar {

/// The content of a configuration file: TOML with one `name = value` per setting and no tables.
struct ConfigFile {
    std::string path;
    std::string text;
};

/// One `key = value` of a file; `line` counts from 1.
struct ConfigFileEntry {
    std::string key;
    std::uint32_t line = 0;
    FileValue value;
};

/// The entries in the order of their lines. Invalid TOML is an Error (bad_config) with the path
/// and, if known, the line and column.
Result<std::vector<ConfigFileEntry>> parse_config_file(const ConfigFile& file);

}  // namespace nexar
