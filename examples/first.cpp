#include <iostream>
#include <nexar/nexar.hpp>

int main() {
    const nexar::bfloat16 third(1.0F / 3.0F);  // to nearest, ties to even
    const nexar::DType dtype = nexar::dtype_of<nexar::bfloat16>;
    const nexar::Error error(nexar::Errc::out_of_memory, "no 8 MiB left", {.rank = nexar::Rank(3)});
    std::cout << "nexar " << nexar::version() << '\n'
              << "one third as " << nexar::name(dtype) << ": " << float(third) << '\n'
              << "an error reads: " << error.what() << '\n';
}
