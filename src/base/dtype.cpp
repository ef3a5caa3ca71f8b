#include <array>
#include <nexar/dtype.hpp>

namespace nexar {

namespace {

struct Row {
    std::string_view name;
    std::size_t size;
};

constexpr unsigned kLocated = 32;

// Indexed by DType; the located types follow at +32.
constexpr std::array<Row, 16> kValues{{
    {"unknown", 0},
    {"i8", 1},
    {"u8", 1},
    {"i16", 2},
    {"u16", 2},
    {"i32", 4},
    {"u32", 4},
    {"i64", 8},
    {"u64", 8},
    {"f16", 2},
    {"bf16", 2},
    {"f32", 4},
    {"f64", 8},
    {"c64", 8},
    {"c128", 16},
    {"opaque", 0},
}};

constexpr std::array<std::string_view, 13> kLocatedNames{
    "unknown",      "located_i8",  "located_u8",  "located_i16", "located_u16",
    "located_i32",  "located_u32", "located_i64", "located_u64", "located_f16",
    "located_bf16", "located_f32", "located_f64"};

constexpr std::array<std::string_view, 14> kOps{
    "unknown",    "sum",         "product",      "min",         "max",
    "average",    "bit_and",     "bit_or",       "bit_xor",     "logical_and",
    "logical_or", "logical_xor", "min_location", "max_location"};

bool is_located(unsigned number) {
    return number > kLocated && number - kLocated < kLocatedNames.size();
}

}  // namespace

std::size_t size_of(DType dtype) noexcept {
    const auto number = static_cast<unsigned>(dtype);
    if (is_located(number)) return sizeof(Located<double>);
    return number < kValues.size() ? kValues[number].size : 0;
}

std::string_view name(DType dtype) noexcept {
    const auto number = static_cast<unsigned>(dtype);
    if (is_located(number)) return kLocatedNames[number - kLocated];
    return number < kValues.size() ? kValues[number].name : "unknown";
}

std::string_view name(ReduceOp op) noexcept {
    const auto number = static_cast<unsigned>(op);
    return number < kOps.size() ? kOps[number] : "unknown";
}

}  // namespace nexar
