#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "harness.hpp"

/// Runs the corpus of every harness without libFuzzer. Fails if a corpus is missing or empty, if it
/// does not contain both accepted and rejected inputs, or if a folder belongs to no harness.
namespace {

std::optional<std::vector<std::filesystem::path>> files_in(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    if (error) {
        std::fprintf(stderr, "cannot read the corpus %s: %s\n", folder.c_str(),
                     error.message().c_str());
        return std::nullopt;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : entries) {
        if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

std::optional<std::string> content_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(stream), {}};
    if (!stream && !stream.eof()) {
        std::fprintf(stderr, "cannot read %s\n", file.c_str());
        return std::nullopt;
    }
    return content;
}

bool replay(const nexar::fuzz::Harness& harness, const std::filesystem::path& corpus) {
    const auto files = files_in(corpus);
    if (!files) return false;
    std::size_t accepted = 0;
    for (const auto& file : *files) {
        // A failed assertion aborts the program: the last name printed is the culprit.
        std::printf("%s/%s\n", corpus.filename().c_str(), file.filename().c_str());
        std::fflush(stdout);
        const auto content = content_of(file);
        if (!content) return false;
        if (harness.accepts(std::as_bytes(std::span(*content)))) ++accepted;
    }
    std::printf("%s: %zu files, %zu accepted, %zu rejected\n", corpus.filename().c_str(),
                files->size(), accepted, files->size() - accepted);
    if (accepted != 0 && accepted != files->size()) return true;
    std::fprintf(stderr, "%s needs both accepted and rejected inputs\n", corpus.c_str());
    return false;
}

bool has_harness_for_each_folder(const std::filesystem::path& corpora) {
    bool complete = true;
    for (const auto& entry : std::filesystem::directory_iterator(corpora)) {
        if (nexar::fuzz::find_harness(entry.path().filename().string()) != nullptr) continue;
        std::fprintf(stderr, "no harness reads the corpus %s\n", entry.path().c_str());
        complete = false;
    }
    return complete;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s CORPORA\n", argc > 0 ? argv[0] : "fuzz_replay");
        return 2;
    }
    const std::filesystem::path corpora = argv[1];
    bool good = has_harness_for_each_folder(corpora);
    for (const auto& harness : nexar::fuzz::harnesses()) {
        good = replay(harness, corpora / harness.name) && good;
    }
    return good ? 0 : 1;
}
