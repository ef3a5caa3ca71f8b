#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "measure.hpp"
#include "report.hpp"
#include "wire/codec.hpp"

/// Measures the codec's cost per message: encoding and decoding the header that every message
/// carries.
namespace {

using namespace nexar;

constexpr std::size_t kHeaders = 256;
constexpr std::size_t kFrame = wire::kMessageHeaderFrameBytes;
using Stream = std::array<std::byte, kHeaders * kFrame>;

std::array<wire::EagerHeader, kHeaders> some_headers() {
    std::array<wire::EagerHeader, kHeaders> headers;
    std::uint64_t i = 0;
    for (auto& header : headers) {
        header = {{.context = ContextId(0x9e3779b97f4a7c15 * (i % 7)),
                   .sequence = Sequence(i),
                   .tag = Tag(i * 31),
                   .size = i * 251 % wire::kMaxEagerBytes,
                   .synchronous = i % 3 == 0}};
        ++i;
    }
    return headers;
}

bool encode_all(const std::array<wire::EagerHeader, kHeaders>& headers, Stream& stream) {
    std::span<std::byte> out(stream);
    for (const auto& header : headers) {
        const auto written = wire::encode(header, out);
        if (!written) return false;
        out = out.subspan(*written);
    }
    return out.empty();
}

bool decode_all(const Stream& stream, std::array<wire::EagerHeader, kHeaders>& headers) {
    std::span<const std::byte> in(stream);
    for (auto& header : headers) {
        const auto frame = wire::decode_frame_header(in);
        if (!frame) return false;
        const auto decoded = wire::decode_body<wire::EagerHeader>(
            *frame, in.subspan(wire::kFrameHeaderBytes, frame->body_bytes));
        if (!decoded) return false;
        header = decoded->message;
        in = in.subspan(wire::kFrameHeaderBytes + frame->body_bytes);
    }
    return in.empty();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Cost of the wire codec on the path of every message");
    std::string json;
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    CLI11_PARSE(app, argc, argv);

    const auto headers = some_headers();
    Stream stream{};
    std::array<wire::EagerHeader, kHeaders> decoded;
    if (!encode_all(headers, stream) || !decode_all(stream, decoded) || headers != decoded) {
        std::fputs("wire_bench: the headers do not survive a round trip\n", stderr);
        return 1;
    }
    const auto timings = bench::measure({[&] {
                                             encode_all(headers, stream);
                                             bench::keep(stream.data());
                                         },
                                         [&] {
                                             decode_all(stream, decoded);
                                             bench::keep(decoded.data());
                                         }});
    // The work is always the same and other load only adds time, so the fastest run counts.
    bench::Report report(json);
    report.row("message_header_encode_ns", timings[0].fastest * 1e9 / kHeaders, "ns");
    report.row("message_header_decode_ns", timings[1].fastest * 1e9 / kHeaders, "ns");
    return report.finish() ? 0 : 1;
}
