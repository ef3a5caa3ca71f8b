#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/assert.hpp"
#include "security/certificate_spec.hpp"
#include "seed_frames.hpp"
#include "seeds.hpp"
#include "support/test_cluster.hpp"
#include "wire/codec.hpp"

/// Writes the generated seeds of all corpora below a folder: fuzz_seeds fuzz/corpus. File names
/// describe the content: an encoded value, or a variant with modified bytes.
namespace {

using namespace nexar;
using fuzz::add_message;
using fuzz::Bytes;
using fuzz::Corpus;
using fuzz::encoded;
using fuzz::with_byte_behind;
using fuzz::without_last_byte;

constexpr ContextId kContext{0x9e3779b97f4a7c15};

Bytes in_version_2(Bytes bytes, std::size_t at) {
    bytes.at(at) = std::byte{2};
    return bytes;
}

void add_headers(const std::filesystem::path& root) {
    add_message<wire::EagerHeader>(root, {},
                                   {{.context = kContext,
                                     .sequence = Sequence(7),
                                     .tag = Tag(42),
                                     .size = wire::kMaxEagerBytes,
                                     .synchronous = true}});
    add_message<wire::BulkHeader>(root, {{.size = 1}},
                                  {{.context = kContext,
                                    .sequence = Sequence(8),
                                    .tag = Tag(~std::uint64_t{0}),
                                    .size = wire::kMaxByteCount,
                                    .awaits_grant = true}});
}

void add_control(const std::filesystem::path& root) {
    using namespace std::chrono_literals;
    wire::Hello hello{.features = 5,
                      .epoch = Epoch(3),
                      .software = "nexar 0.1.0 \xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x80",
                      .wanted_rank = Rank(4)};
    hello.host_id.fill(std::byte{0xab});
    add_message<wire::Hello>(root, {}, hello);
    add_message<wire::Welcome>(
        root, {},
        {.features = 1,
         .epoch = Epoch(4),
         .rank = Rank(2),
         .world_size = 3,
         .payload_credit_bytes = 1 << 20,
         .header_credits = 16384,
         .settings = {{"a", ""}, {"eager_limit", "16KiB", "default"}, {"z", "\xc3\xa9", "--z"}}});
    add_message<wire::ErrorReport>(root, {},
                                   {.code = static_cast<Errc>(999),
                                    .epoch = Epoch(3),
                                    .text = "bad frame",
                                    .rank = Rank(1),
                                    .context = kContext,
                                    .sequence = Sequence(7)});
    add_message<wire::Heartbeat>(root, {},
                                 {.epoch = Epoch(3),
                                  .number = 12,
                                  .sent_at = 5s,
                                  .echo = 4999ms,
                                  .echo_delay = 250us,
                                  .counter = 2,
                                  .wants_answer = true});
    add_message<wire::Revoke>(root, {}, {.context = kContext});
    add_message<wire::NewWorld>(
        root, {.members = std::vector<wire::WorldMember>(2)},
        {.context = kContext, .members = std::vector<wire::WorldMember>(3)});
    add_message<wire::Credit>(root, {.headers = 1},
                              {.pool = wire::CreditPool::communicator,
                               .context = kContext,
                               .payload_bytes = 65536,
                               .headers = 4});
    add_message<wire::Grant>(root, {},
                             {.context = kContext,
                              .sequence = Sequence(8),
                              .window_bytes = 1 << 20,
                              .link = Bytes(64, std::byte{0xfe})});
    add_message<wire::Withdraw>(
        root, {},
        {.context = kContext, .sequence = Sequence(8), .step = wire::WithdrawStep::received});
    add_message<wire::Confirm>(root, {}, {.epoch = Epoch(4)});
    add_message<wire::LinkOffer>(root, {.kind = "x"},
                                 {.kind = "shm", .invitation = Bytes(64, std::byte{0xfe})});
    add_message<wire::LinkRefusal>(root, {.kind = "x"}, {.kind = "shm", .why = "another host"});
    add_message<wire::LinkReady>(root, {.kind = "x"}, {.kind = "shm"});
    add_message<wire::Moved>(root, {}, {.position = 4096});
    add_message<wire::Abort>(root, {},
                             {.code = -3, .rank = Rank(2), .text = "the input has no header"});
    add_message<wire::ContextBegin>(
        root, {},
        {.context = kContext,
         .origin = {.parent = ContextId(5), .creation = 2, .colour = 1, .epoch = Epoch(1)},
         .rank = Rank(3),
         .size = 4});
    add_message<wire::ContextEnd>(root, {}, {.context = kContext, .collectives = 9});
}

void add_collectives(const std::filesystem::path& root) {
    add_message<wire::CollectiveHeader>(root, {.size = wire::kMaxEagerBytes},
                                        {.context = kContext,
                                         .sequence = Sequence(5),
                                         .operation = 3,
                                         .message = 2,
                                         .size = wire::kMaxByteCount,
                                         .fingerprint = 0xfeedfacecafebeef,
                                         .place = wire::PayloadPlace::stream,
                                         .from_reserve = true});
    add_message<wire::CollectiveMismatch>(root, {},
                                          {.context = kContext,
                                           .operation = 3,
                                           .expects = wire::kMaxByteCount,
                                           .description = "all_reduce of 4 \xc3\xa9"});
    add_message<wire::CollectiveAbort>(root, {},
                                       {.context = kContext,
                                        .operation = 3,
                                        .code = static_cast<Errc>(999),
                                        .rank = Rank(2),
                                        .text = "it was cancelled"});
}

void add_agreements(const std::filesystem::path& root) {
    using wire::AgreementStep;
    const wire::AgreementValue value{.flags = 5,
                                     .fingerprint = 0xfeedfacecafebeef,
                                     .creation = 8,
                                     .epoch = Epoch(4),
                                     .words = {9, 10, 11, 12},
                                     .lost = {Rank(0), Rank(3)}};
    const wire::Agreement question{
        .step = AgreementStep::question, .context = kContext, .number = 2, .epoch = Epoch(5)};
    wire::Agreement state = question;
    state.step = AgreementStep::state;
    state.call = {{.kind = wire::AgreementKind::exclude,
                   .flags = 7,
                   .fingerprint = value.fingerprint,
                   .creations = 3,
                   .newest = Epoch(6),
                   .words = {1, 2, 3, 4},
                   .excluded = {Rank(1)}}};
    state.stored_in = Epoch(4);
    state.value = {value};
    add_message<wire::Agreement>(root, question, state);
    const Corpus corpus(root, "agreement");
    const auto add = [&](const std::string& name, AgreementStep step, auto change) {
        wire::Agreement agreement = question;
        agreement.step = step;
        change(agreement);
        corpus.add(name, encoded(agreement));
    };
    add("proposal", AgreementStep::proposal, [&](auto& x) { x.value = {value}; });
    add("stored", AgreementStep::stored, [](auto&) {});
    add("decision", AgreementStep::decision, [&](auto& x) { x.value = {value}; });
    add("failure", AgreementStep::decision,
        [](auto& x) { x.value = {{.code = static_cast<Errc>(999), .text = "different calls"}}; });
    add("waiting", AgreementStep::waiting, [](auto& x) { x.missing = {Rank(1), Rank(2)}; });
    Bytes without_value = encoded(question);
    without_value.at(wire::kFrameHeaderBytes) = static_cast<std::byte>(AgreementStep::decision);
    corpus.add("decision_without_value", without_value);
    Bytes unordered = encoded(state);
    unordered.at(wire::kFrameHeaderBytes + 176) = std::byte{3};
    corpus.add("unordered_ranks", unordered);
}

void add_routing(const std::filesystem::path& root) {
    wire::EnvelopeFrame part;
    part.source = Rank(3);
    part.target = Rank(12);
    part.hops = wire::kMaxHops;
    part.part = wire::kLastPart;
    part.choice = 258;
    part.number = 7;
    part.packet = Bytes(1, std::byte{0xc5});
    wire::EnvelopeFrame packet = part;
    packet.part = wire::kWholePacket;
    packet.hops = 1;
    packet.packet = Bytes(64, std::byte{0x40});
    add_message<wire::EnvelopeFrame>(root, part, packet);
    const Corpus corpus(root, "envelope");
    const auto add = [&](const std::string& name, std::size_t at, unsigned value) {
        Bytes bytes = encoded(packet);
        bytes.at(wire::kFrameHeaderBytes + at) = static_cast<std::byte>(value);
        corpus.add(name, bytes);
    };
    add("to_its_source", 4, 3);
    add("no_hops", 8, 0);
    add("too_many_hops", 8, wire::kMaxHops + 1);
    add("third_part", 9, 3);
    corpus.add("no_packet", without_last_byte(encoded(part)));

    wire::LinkState state{.origin = Rank(3),
                          .incarnation = 6,
                          .epoch = Epoch(5),
                          .version = 9,
                          .down = {Rank(2), Rank(12)}};
    state.key.fill(std::byte{0xab});
    state.signature.fill(std::byte{0xcd});
    add_message<wire::LinkState>(root, {.epoch = Epoch(1)}, state);
    add_message<wire::PathRequest>(root, {}, {.direct = true});
    const Corpus states(root, "link_state");
    const auto add_broken = [&](const std::string& name, unsigned second) {
        Bytes bytes = encoded(state);
        bytes.at(wire::kFrameHeaderBytes + 34) = static_cast<std::byte>(second);
        states.add(name, bytes);
    };
    add_broken("unordered_ranks", 1);
    add_broken("names_its_origin", 3);
}

void add_calls(const std::filesystem::path& root) {
    add_message<wire::Request>(root, {.function = 7},
                               {.call = wire::CallId(9),
                                .time_left = std::chrono::seconds(2),
                                .function = 0,
                                .name = "sum of \xc3\xa9",
                                .size = wire::kMaxByteCount,
                                .place = wire::PayloadPlace::stream});
    add_message<wire::Response>(
        root, {.size = 8},
        {.call = wire::CallId(9), .code = static_cast<Errc>(999), .text = "too late"});
    add_message<wire::Cancel>(root, {}, {.call = wire::CallId(9)});
}

void add_preambles(const std::filesystem::path& root) {
    using wire::Lane;
    const Corpus corpus(root, "preamble");
    for (const Lane lane : {Lane::control, Lane::rpc, Lane::eager, Lane::seed}) {
        corpus.add(std::string(wire::name(lane)), encoded(wire::Preamble{.lane = lane}));
    }
    const Bytes bulk =
        encoded(wire::Preamble{.lane = Lane::bulk, .context = kContext, .sequence = Sequence(8)});
    corpus.add("bulk", bulk);
    corpus.add("collective",
               encoded(wire::Preamble{
                   .lane = Lane::collective, .context = kContext, .sequence = Sequence(5)}));
    corpus.add("call",
               encoded(wire::Preamble{
                   .lane = Lane::call, .call = wire::CallId(9), .part = wire::CallPart::response}));
    Bytes no_part = encoded(wire::Preamble{
        .lane = Lane::call, .call = wire::CallId(9), .part = wire::CallPart::request});
    no_part.at(16) = std::byte{0x18};
    corpus.add("call_of_no_part", no_part);
    Bytes continued = encoded(wire::Preamble{
        .lane = Lane::continued, .continues = wire::ContinuedLane::eager, .position = 4711});
    corpus.add("continued", continued);
    continued.at(8) = std::byte{5};
    corpus.add("continued_of_no_lane", continued);
    corpus.add("cut", without_last_byte(bulk));
    corpus.add("trailing", with_byte_behind(bulk));
    corpus.add("version_2", in_version_2(bulk, 4));
    Bytes file = encoded(wire::Preamble{});
    file.at(5) = static_cast<std::byte>(Lane::file);
    corpus.add("file", file);
}

/// Keys and serial numbers of certificates are new each time, so existing ones are kept.
void add_certificates(const std::filesystem::path& root) {
    if (std::filesystem::exists(root / "certificate")) return;
    const Corpus corpus(root, "certificate");
    const testing::TestCluster cluster;
    const auto key = security::KeyPair::generate().value();
    const auto add = [&](const std::string& name, const security::CertificateSpec& spec) {
        const security::Signer signer{.key = cluster.ca().key(),
                                      .certificate = &cluster.ca().certificate()};
        const Bytes der = security::sign_certificate(spec, signer).value();
        corpus.add(name, der);
        return der;
    };
    const security::CertificateSpec node = cluster.node_spec(1, key);
    const Bytes plain = add("node", node);
    corpus.add("cut", without_last_byte(plain));
    corpus.add("trailing", with_byte_behind(plain));
    corpus.add("ca", cluster.ca().certificate().der());

    security::CertificateSpec spec = node;
    spec.uris = {"https://host"};
    add("no_name", spec);
    spec.uris = {node.uris[0], node.uris[0]};
    add("two_names", spec);
    spec.uris = {node.uris[0] + "0"};
    add("malformed_name", spec);
    spec.uris = {"https://host", node.uris[0], "https://other"};
    add("several_names", spec);
    spec.uris.assign(security::Certificate::kMaxNames + 1, "https://host");
    add("too_many_names", spec);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s FOLDER\n", argc > 0 ? argv[0] : "fuzz_seeds");
        return 2;
    }
    const std::filesystem::path root(argv[1]);
    std::error_code error;
    std::filesystem::create_directories(root, error);
    if (error) {
        std::fprintf(stderr, "cannot create %s: %s\n", argv[1], error.message().c_str());
        return 1;
    }
    add_preambles(root);
    add_headers(root);
    add_control(root);
    add_collectives(root);
    add_agreements(root);
    add_routing(root);
    add_calls(root);
    add_certificates(root);
    fuzz::add_join(root);
    fuzz::add_quic(root);
    fuzz::add_engine(root);
    fuzz::add_calls_of_engine(root);
    Corpus(root, "frame").add("version_2", in_version_2(encoded(wire::Heartbeat{}), 0));
    return 0;
}
