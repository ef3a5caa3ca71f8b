#include <cstdio>
#include <nexar/nexar.hpp>
#include <string>

// Uses both exported symbols and inline code of the headers, and prints the version for the test to
// compare.
int main() {
    const nexar::Error error(nexar::Errc::invalid_argument, "planted", {.rank = 3});
    const bool sound = std::string(error.what()) == "invalid_argument: planted [rank 3]" &&
                       nexar::size_of(nexar::dtype_of<float>) == sizeof(float) &&
                       static_cast<float>(nexar::bfloat16(1.5F)) == 1.5F;
    const std::string version(nexar::version());
    std::printf("%s\n", version.c_str());
    return sound ? 0 : 1;
}
