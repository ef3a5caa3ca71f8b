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

/// The folder with the seeds of one harness.
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
        NEXAR_ASSERT(file.good(), "the seed could not be written");
    }

private:
    std::filesystem::path folder_;
};

/// Builds inputs of a harness that plays acts: each act is a byte, followed by its operands.
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

/// Packets from strangers. Keys are new each time, so existing packets are kept.
void add_quic(const std::filesystem::path& root);

/// Join strings, the messages between a seed and joining nodes, and the files of a seed.
void add_join(const std::filesystem::path& root);

/// What a peer and this side do with an engine.
void add_engine(const std::filesystem::path& root);
/// The same for its calls.
void add_calls_of_engine(const std::filesystem::path& root);

}  // namespace nexar::fuzz
