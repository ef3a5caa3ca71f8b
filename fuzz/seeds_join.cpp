#include <algorithm>
#include <array>
#include <string>

#include "security/join_string.hpp"
#include "seed_frames.hpp"
#include "seeds.hpp"

namespace nexar::fuzz {

namespace {

template <std::size_t N>
std::array<std::byte, N> counted(unsigned first) {
    std::array<std::byte, N> made{};
    for (std::size_t i = 0; i < N; ++i) made[i] = static_cast<std::byte>(first + i);
    return made;
}

wire::ViewMember member(std::uint32_t rank) {
    return {.node = counted<16>(0x10 + rank),
            .incarnation = rank,
            .rank = Rank(rank),
            .addresses = {{"10.0.0.7:7400"}, {"[fd00::7]:7400"}},
            .key_hash = counted<32>(0xc0),
            .token = counted<16>(0x30),
            .host = "node7"};
}

wire::ViewFrame view() {
    return {.epoch = Epoch(4),
            .witness = counted<16>(0x40),
            .witness_incarnation = 3,
            .next_rank = Rank(5),
            .members = {member(0), member(2)},
            .spent = {{.token = counted<16>(0x30), .uses = 2}, {.token = counted<16>(0x50)}},
            .left = {Rank(1), Rank(3)}};
}

void add_lane(const std::filesystem::path& root) {
    add_message<wire::Proof>(root, {}, {.code = counted<32>(0x60)});
    add_message<wire::JoinRequest>(
        root, {},
        {.token = counted<16>(0x30),
         .token_secret = counted<32>(0xa0),
         .signing_request = Bytes(40, std::byte{0x30}),
         .host = "node-7 \xc3\xa9",
         .addresses = {{"10.0.0.7:7400"}, {"[fd00::7]:7400"}, {"[::]:0"}}});
    add_message<wire::Admission>(
        root, {},
        {.node = counted<16>(0x10), .incarnation = 1, .certificate = Bytes(60, std::byte{0x30})});
    add_message<wire::ViewFrame>(root, {.epoch = Epoch(1)}, view());
    add_message<wire::Formation>(
        root, {}, {.joined = 3, .world_size = 4, .text = "3 of 4 joined; rank 2 is missing"});
    add_message<wire::Renewal>(root, {}, {.signing_request = Bytes(40, std::byte{0x30})});
    add_message<wire::LinkReport>(root, {},
                                  {.rank = Rank(2),
                                   .address = {"10.0.0.9:41000"},
                                   .round_trip = std::chrono::microseconds(120),
                                   .why = "172.17.0.1:41000: another node"});
}

void add_membership(const std::filesystem::path& root) {
    using wire::BallotStep;
    add_message<wire::Suspicion>(root, {},
                                 {.step = wire::SuspicionStep::suspected,
                                  .node = counted<16>(0x20),
                                  .incarnation = 6,
                                  .counter = 2});
    const wire::BallotNumber number{.round = 7, .proposer = counted<16>(0x10)};
    const wire::BallotNumber lower{.round = 4, .proposer = counted<16>(0x20)};
    const wire::Ballot prepare{.epoch = Epoch(4), .number = number};
    wire::Ballot promise = prepare;
    promise.step = BallotStep::promise;
    promise.other = lower;
    promise.view = {view()};
    add_message<wire::Ballot>(root, prepare, promise);
    const Corpus ballots(root, "ballot");
    const auto add = [&](const std::string& name, BallotStep step) {
        wire::Ballot ballot = prepare;
        ballot.step = step;
        if (step == BallotStep::accept) ballot.view = {view()};
        if (step == BallotStep::refused) ballot.other = lower;
        ballots.add(name, encoded(ballot));
    };
    add("promise_of_no_vote", BallotStep::promise);
    add("accept", BallotStep::accept);
    add("accepted", BallotStep::accepted);
    add("refused", BallotStep::refused);
    Bytes empty_accept = encoded(prepare);
    empty_accept.at(wire::kFrameHeaderBytes) = static_cast<std::byte>(BallotStep::accept);
    ballots.add("accept_without_view", empty_accept);
    Bytes other_epoch = encoded(promise);
    other_epoch.at(wire::kFrameHeaderBytes + 1) = std::byte{5};
    ballots.add("view_of_another_epoch", other_epoch);
}

void add_files(const std::filesystem::path& root) {
    add_message<wire::StoredTokens>(root, {},
                                    {.tokens = {{.id = counted<16>(0x30),
                                                 .secret_hash = counted<32>(0xc0),
                                                 .uses = 4,
                                                 .created_at = 1'777'863'721,
                                                 .expires_at = 1'777'867'321,
                                                 .revoked = true},
                                                {.id = counted<16>(0x50)}}});
    add_message<wire::StoredSeed>(
        root, {},
        {.seed = counted<16>(0x40),
         .incarnation = 3,
         .epoch = Epoch(4),
         .world_size = 2,
         .members = {member(1)},
         .spent = {{.token = counted<16>(0x30), .uses = 2}, {.token = counted<16>(0x50)}},
         .origin = counted<32>(0x60),
         .least_epoch = Epoch(6),
         .view = {{.epoch = Epoch(4), .next_rank = Rank(5), .members = {member(2)}}},
         .promised_round = 2,
         .promised_by = counted<16>(0x10),
         .accepted_round = 1,
         .accepted_by = counted<16>(0x20),
         .accepted = {{.epoch = Epoch(5), .next_rank = Rank(5)}}});
}

void add_join_strings(const std::filesystem::path& root) {
    const Corpus corpus(root, "join_string");
    const auto bytes_of = [](const std::string& text) {
        Bytes bytes(text.size());
        std::ranges::transform(text, bytes.begin(), [](char c) { return std::byte(c); });
        return bytes;
    };
    const auto text_with = [](std::vector<std::string> seeds) {
        security::JoinString made;
        made.token = security::TokenId(counted<16>(0x10));
        made.secret = Secret(counted<32>(0xa0));
        made.ca = counted<32>(0x40);
        made.seeds = std::move(seeds);
        return made.text();
    };
    const std::string plain = text_with({"10.0.0.7:7400"});
    corpus.add("v4", bytes_of(plain));
    corpus.add("v6", bytes_of(text_with({"[fd00::7]:7400"})));
    corpus.add("name", bytes_of(text_with({"seed-0.example_x.org:65535"})));
    corpus.add("several", bytes_of(text_with({"10.0.0.7:7400", "[fd00::7]:7400", "seed:1"})));
    corpus.add(
        "too_many",
        bytes_of(text_with({"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1", "i:1"})));
    corpus.add("cut", bytes_of(plain.substr(0, plain.size() - 5)));
    corpus.add("no_seed", bytes_of(plain.substr(0, plain.find('@'))));
    corpus.add("empty_seed", bytes_of(plain + ","));
    std::string upper = plain;
    upper[plain.find("bebf") + 3] = 'F';
    corpus.add("upper_case_secret", bytes_of(upper));
    std::string zero = text_with({"[fd00::7]:7400"});
    zero.insert(zero.find(']'), 1, '\0');
    corpus.add("zero_in_address", bytes_of(zero));
}

}  // namespace

void add_join(const std::filesystem::path& root) {
    add_lane(root);
    add_membership(root);
    add_files(root);
    add_join_strings(root);
}

}  // namespace nexar::fuzz
