#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "samples.hpp"
#include "wire/codec.hpp"

/// Compares docs/protocol.md with the code: hex examples, frame types and limits, in both
/// directions.
namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::encoded;
using testing::example;
using testing::to_hex;

std::vector<std::string> lines_of_the_doc() {
    std::ifstream file(NEXAR_PROTOCOL_DOC);
    EXPECT_TRUE(file) << "cannot read " << NEXAR_PROTOCOL_DOC;
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

/// Blocks that open with ```hex NAME; text after a # is a comment.
std::map<std::string, Bytes> hex_examples() {
    std::map<std::string, Bytes> examples;
    const std::string opening = "```hex ";
    Bytes* open = nullptr;
    for (const std::string& line : lines_of_the_doc()) {
        if (line.starts_with(opening)) {
            open = &examples[line.substr(opening.size())];
            EXPECT_TRUE(open->empty()) << "two examples have the same name: " << line;
        } else if (line.starts_with("```")) {
            open = nullptr;
        } else if (open != nullptr) {
            const Bytes bytes = testing::from_hex(line.substr(0, line.find('#')));
            open->insert(open->end(), bytes.begin(), bytes.end());
        }
    }
    return examples;
}

/// The cells of all table rows, without spaces and backquotes.
std::vector<std::vector<std::string>> table_rows() {
    std::vector<std::vector<std::string>> rows;
    for (const std::string& line : lines_of_the_doc()) {
        if (!line.starts_with("| ")) continue;
        std::vector<std::string> cells;
        std::istringstream stream(line.substr(1));
        for (std::string cell; std::getline(stream, cell, '|');) {
            std::erase_if(cell, [](char c) { return c == ' ' || c == '`'; });
            cells.push_back(cell);
        }
        rows.push_back(cells);
    }
    return rows;
}

Bytes encoded_preamble(const Preamble& preamble) {
    Bytes bytes(encoded_size(preamble));
    EXPECT_TRUE(encode(preamble, std::span<std::byte>(bytes)));
    return bytes;
}

std::map<std::string, Bytes> examples_of_the_code() {
    return {
        {"preamble_control", encoded_preamble({.lane = Lane::control})},
        {"preamble_bulk", encoded_preamble({.lane = Lane::bulk,
                                            .context = ContextId(0x9e3779b97f4a7c15),
                                            .sequence = Sequence(8)})},
        {"preamble_collective", encoded_preamble({.lane = Lane::collective,
                                                  .context = ContextId(0x9e3779b97f4a7c15),
                                                  .sequence = Sequence(5)})},
        {"eager", encoded(example<EagerHeader>())},
        {"bulk", encoded(example<BulkHeader>())},
        {"hello", encoded(example<Hello>())},
        {"welcome", encoded(example<Welcome>())},
        {"error_report", encoded(example<ErrorReport>())},
        {"heartbeat", encoded(example<Heartbeat>())},
        {"credit", encoded(example<Credit>())},
        {"grant", encoded(example<Grant>())},
        {"withdraw", encoded(example<Withdraw>())},
        {"confirm", encoded(example<Confirm>())},
        {"abort", encoded(example<Abort>())},
        {"agreement", encoded(example<Agreement>())},
        {"link_offer", encoded(example<LinkOffer>())},
        {"link_refusal", encoded(example<LinkRefusal>())},
        {"link_ready", encoded(example<LinkReady>())},
        {"moved", encoded(example<Moved>())},
        {"preamble_continued",
         encoded_preamble(
             {.lane = Lane::continued, .continues = ContinuedLane::eager, .position = 4096})},
        {"context_begin", encoded(example<ContextBegin>())},
        {"context_end", encoded(example<ContextEnd>())},
        {"collective", encoded(example<CollectiveHeader>())},
        {"collective_mismatch", encoded(example<CollectiveMismatch>())},
        {"collective_abort", encoded(example<CollectiveAbort>())},
        {"preamble_call",
         encoded_preamble({.lane = Lane::call, .call = CallId(9), .part = CallPart::response})},
        {"request", encoded(example<Request>())},
        {"response", encoded(example<Response>())},
        {"cancel", encoded(example<Cancel>())},
        {"preamble_seed", encoded_preamble({.lane = Lane::seed})},
        {"proof", encoded(example<Proof>())},
        {"join_request", encoded(example<JoinRequest>())},
        {"admission", encoded(example<Admission>())},
        {"view", encoded(example<ViewFrame>())},
        {"formation", encoded(example<Formation>())},
        {"renewal", encoded(example<Renewal>())},
        {"link_report", encoded(example<LinkReport>())},
        {"stored_tokens", encoded(example<StoredTokens>())},
        {"stored_seed", encoded(example<StoredSeed>())},
        {"suspicion", encoded(example<Suspicion>())},
        {"ballot", encoded(example<Ballot>())},
        {"revoke", encoded(example<Revoke>())},
        {"new_world", encoded(example<NewWorld>())},
        {"envelope", encoded(example<EnvelopeFrame>())},
        {"link_state", encoded(example<LinkState>())},
        {"path_request", encoded(example<PathRequest>())},
    };
}

TEST(ProtocolDoc, hex_examples_match_the_encoder) {
    const auto written = hex_examples();
    const auto coded = examples_of_the_code();
    for (const auto& [name, bytes] : coded) {
        ASSERT_TRUE(written.contains(name)) << "no example of " << name;
        EXPECT_EQ(to_hex(written.at(name)), to_hex(bytes)) << name;
    }
    EXPECT_EQ(written.size(), coded.size())
        << "the document has an example that the encoder does not write";
}

TEST(ProtocolDoc, hex_examples_decode) {
    for (const auto& [name, bytes] : hex_examples()) {
        if (name.starts_with("preamble")) {
            EXPECT_TRUE(decode_preamble(bytes)) << name;
        } else {
            EXPECT_TRUE(decode_frame(bytes)) << name;
        }
    }
}

TEST(ProtocolDoc, every_frame_type_has_an_example) {
    const auto written = hex_examples();
    for (const FrameRules& rules : kFrameRules) {
        EXPECT_TRUE(written.contains(std::string(rules.name))) << rules.name;
    }
}

/// The lanes of a type, followed by datagrams: "control,seed".
std::string travels_on(FrameType type) {
    std::string all;
    for (unsigned number = 0; number < 256; ++number) {
        const auto lane = static_cast<Lane>(number);
        if (belongs_on(lane, type)) all += (all.empty() ? "" : ",") + std::string(name(lane));
    }
    if (belongs_in_datagram(type)) all += all.empty() ? "datagram" : ",datagram";
    return all;
}

TEST(ProtocolDoc, lists_the_frame_types) {
    std::set<std::vector<std::string>> coded;
    for (const FrameRules& rules : kFrameRules) {
        coded.insert({std::to_string(static_cast<unsigned>(rules.type)), std::string(rules.name),
                      std::to_string(rules.max_body_bytes), travels_on(rules.type)});
    }
    std::set<std::vector<std::string>> written;
    bool inside = false;
    for (const auto& row : table_rows()) {
        if (row.size() != 4 || row[1] == "size") inside = false;
        if (inside) written.insert(row);
        if (row.size() == 4 && row[0] == "type") inside = true;
    }
    EXPECT_EQ(written, coded);
}

TEST(ProtocolDoc, lists_the_limits) {
    const std::map<std::string, std::string> coded{
        {"kProtocolVersion", std::to_string(kProtocolVersion)},
        {"kPreambleBytes", std::to_string(kPreambleBytes)},
        {"kBulkPreambleBytes", std::to_string(kBulkPreambleBytes)},
        {"kFrameHeaderBytes", std::to_string(kFrameHeaderBytes)},
        {"kMessageHeaderFrameBytes", std::to_string(kMessageHeaderFrameBytes)},
        {"kCollectiveHeaderFrameBytes", std::to_string(kCollectiveHeaderFrameBytes)},
        {"kMaxByteCount", std::to_string(kMaxByteCount)},
        {"kMaxEagerBytes", std::to_string(kMaxEagerBytes)},
        {"kBulkHeadBytes", std::to_string(kBulkHeadBytes)},
        {"kMaxWorldSize", std::to_string(kMaxWorldSize)},
        {"kMaxRank", std::to_string(kMaxRank)},
        {"kMaxSoftwareBytes", std::to_string(kMaxSoftwareBytes)},
        {"kMaxReportTextBytes", std::to_string(kMaxReportTextBytes)},
        {"kMaxLinkBytes", std::to_string(kMaxLinkBytes)},
        {"kMaxLinkKindBytes", std::to_string(kMaxLinkKindBytes)},
        {"kMaxCallFrameBytes", std::to_string(kMaxCallFrameBytes)},
        {"kMaxFunctionNameBytes", std::to_string(kMaxFunctionNameBytes)},
        {"kMaxSettings", std::to_string(kMaxSettings)},
        {"kMaxSettingNameBytes", std::to_string(kMaxSettingNameBytes)},
        {"kMaxSettingValueBytes", std::to_string(kMaxSettingValueBytes)},
        {"kMaxSettingOriginBytes", std::to_string(kMaxSettingOriginBytes)},
        {"kMaxSigningRequestBytes", std::to_string(kMaxSigningRequestBytes)},
        {"kMaxCertificateBytes", std::to_string(kMaxCertificateBytes)},
        {"kMaxHostBytes", std::to_string(kMaxHostBytes)},
        {"kMaxAddressBytes", std::to_string(kMaxAddressBytes)},
        {"kMaxAddresses", std::to_string(kMaxAddresses)},
        {"kMaxViewMembers", std::to_string(kMaxViewMembers)},
        {"kMaxPacketBytes", std::to_string(kMaxPacketBytes)},
        {"kMaxHops", std::to_string(kMaxHops)},
        {"kMaxDownLinks", std::to_string(kMaxDownLinks)},
        {"kEnvelopeBytes", std::to_string(kEnvelopeBytes)},
        {"kMaxStoredTokens", std::to_string(kMaxStoredTokens)},
    };
    std::map<std::string, std::string> written;
    for (const auto& row : table_rows()) {
        if (row.size() >= 2 && row[0].starts_with("k")) written[row[0]] = row[1];
    }
    EXPECT_EQ(written, coded);
}

}  // namespace
}  // namespace nexar::wire
