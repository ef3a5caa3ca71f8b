#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"

namespace nexar::fuzz {

using Bytes = std::vector<std::byte>;

/// The folder of one harness's seeds.
class Corpus {
public:
    Corpus(const std::filesystem::path& root, std::string_view name) : folder_(root / name) {
        std::filesystem::create_directories(folder_);
    }

    void add(const std::string& name, const Bytes& bytes) const {
        std::string text(bytes.size(), '\0');
        std::ranges::transform(bytes, text.begin(),
                               [](std::byte b) { return static_cast<char>(b); });
        std::ofstream file(folder_ / name, std::ios::binary);
        file << text;
        file.flush();
        NEXAR_ASSERT(file.good(), "the seed must be written");
    }

private:
    std::filesystem::path folder_;
};

/// Writes inputs of a harness that plays acts: each is a byte, and its operands behind it.
template <class Act>
class Story {
public:
    Story& operator()(Act act, std::initializer_list<unsigned> operands = {}) {
        bytes_.push_back(static_cast<std::byte>(act));
        for (const unsigned operand : operands) bytes_.push_back(static_cast<std::byte>(operand));
        return *this;
    }

    const Bytes& bytes() const noexcept { return bytes_; }

private:
    Bytes bytes_;
};

/// Packets as strangers send them. Keys are new each time, so those that are there stay.
void add_quic(const std::filesystem::path& root);

/// Join strings, what a seed and who joins say to each other, and what a seed keeps.
void add_join(const std::filesystem::path& root);

/// What a peer and this side do to an engine.
void add_engine(const std::filesystem::path& root);
/// The same for its calls.
void add_calls_of_engine(const std::filesystem::path& root);

}  // namespace nexar::fuzz
