#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "harness.hpp"

/// Runs every file of a corpus through the harness, without libFuzzer. Fails when the corpus is
/// missing, empty, or cannot show both answers of the decoder.
namespace {

std::optional<std::vector<std::filesystem::path>> files_in(const char* folder) {
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    if (error) {
        std::fprintf(stderr, "cannot read the corpus %s: %s\n", folder, error.message().c_str());
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

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s CORPUS\n", argc > 0 ? argv[0] : "replay");
        return 2;
    }
    const auto files = files_in(argv[1]);
    if (!files) return 1;
    std::size_t accepted = 0;
    for (const auto& file : *files) {
        // A broken promise aborts: the last name printed is the culprit.
        std::printf("%s\n", file.filename().c_str());
        std::fflush(stdout);
        const auto content = content_of(file);
        if (!content) return 1;
        if (nexar::fuzz::accepts(std::as_bytes(std::span(*content)))) ++accepted;
    }
    std::printf("%zu files, %zu accepted, %zu refused\n", files->size(), accepted,
                files->size() - accepted);
    if (accepted == 0 || accepted == files->size()) {
        std::fprintf(stderr, "%s needs inputs that are accepted and inputs that are refused\n",
                     argv[1]);
        return 1;
    }
    return 0;
}
