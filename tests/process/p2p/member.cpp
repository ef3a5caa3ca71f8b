#include "process/p2p/member.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>
#include <vector>

#include "support/link_driver.hpp"

namespace nexar::testing {

namespace {

constexpr std::chrono::seconds kFormTime(20);

Address loopback() {
    return Address::parse("127.0.0.1:0").value();
}

}  // namespace

Member::Member(const TestCluster& cluster, std::uint64_t index, const NodeOptions& options)
    : Member(cluster, index, runtime::make_loop(options).value(), options) {}

Member::Member(const TestCluster& cluster, std::uint64_t index, std::shared_ptr<runtime::Loop> loop,
               const NodeOptions& options, const link::LinkSettings& link)
    : shares_memory_(options.link == "shm"),
      body_(detail::NodeBody::open(std::move(loop), {.credentials = cluster.node(index),
                                                     .listen = loopback(),
                                                     .options = options,
                                                     .link = link})
                .value()),
      node_(std::make_unique<Node>(body_)) {}

void Member::form(std::span<const ::nexar::Member> members) {
    std::vector<::nexar::Member> all(members.begin(), members.end());
    for (::nexar::Member& member : all) {
        // A node recognises members on its host by their addresses. Nobody dials this one.
        if (shares_memory_ && member.addresses.empty())
            member.addresses = {Address::parse("127.0.0.1:1").value()};
    }
    body_->form({.epoch = Epoch(1), .members = std::move(all)});
}

Result<void> Member::wait_formed() {
    return body_->wait_formed(body_->now() + patience(kFormTime));
}

::nexar::Member dialer(std::uint64_t index) {
    return {.node = TestCluster::node_id(index),
            .incarnation = Incarnation(1),
            .rank = Rank(static_cast<std::uint32_t>(index))};
}

namespace {

std::unique_ptr<Member> open_member(const TestCluster& cluster, std::uint64_t index,
                                    const PairOptions& options) {
    NodeOptions node;
    node.link = options.link;
    return std::make_unique<Member>(cluster, index, runtime::make_loop(node).value(), node,
                                    options.settings);
}

}  // namespace

std::unique_ptr<Member> join_as_child(const TestCluster& cluster, const Channel& parent,
                                      const PairOptions& options) {
    auto member = open_member(cluster, 0, options);
    member->form(std::array{dialer(0), dialer(1)});
    parent.say(member->address().text());
    member->wait_formed().value();
    return member;
}

std::unique_ptr<Member> join_as_parent(const TestCluster& cluster, const Channel& child,
                                       const PairOptions& options) {
    ::nexar::Member server = dialer(0);
    server.addresses = {Address::parse(hear(child, patience(kFormTime))).value()};
    auto member = open_member(cluster, 1, options);
    member->form(std::array{server, dialer(1)});
    member->wait_formed().value();
    return member;
}

std::string hear(const Channel& other, Duration within) {
    auto text = other.hear(within);
    if (!text) throw Error(Errc::timed_out, "the other process sent nothing or has exited");
    if (text->starts_with("failed: ")) throw Error(Errc::protocol_violation, *text);
    return *std::move(text);
}

void await(const Channel& other, std::string_view expected, Duration within) {
    const std::string text = hear(other, within);
    if (text == expected) return;
    throw Error(Errc::protocol_violation,
                fmt::format("received \"{}\" instead of \"{}\"", text, expected));
}

std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t all_pages = 0;
    std::size_t resident_pages = 0;
    if (!(file >> all_pages >> resident_pages))
        throw Error(Errc::bad_config, "cannot read /proc/self/statm");
    return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

Growth::Growth() {
    ::malloc_trim(0);  // otherwise reuse of freed memory would hide growth
    begin_ = resident_bytes();
}

void Growth::look() {
    const std::size_t now = resident_bytes();
    most_ = std::max(most_, now - std::min(now, begin_));
}

}  // namespace nexar::testing
