#include "process/shm/host_world.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string>

namespace nexar::testing {

std::unique_ptr<Member> join_host_world(const TestCluster& cluster, const Channel& parent,
                                        Place place, std::string_view link,
                                        const link::LinkSettings& settings) {
    NodeOptions options;
    options.link = link;
    auto member = std::make_unique<Member>(cluster, static_cast<std::uint64_t>(place.rank),
                                           runtime::make_loop(options).value(), options, settings);
    parent.say(member->address().text());
    std::istringstream addresses(hear(parent, kWithin));
    std::vector<::nexar::Member> members;
    for (int i = 0; i < place.size; ++i) {
        std::string address;
        addresses >> address;
        members.push_back(dialer(static_cast<std::uint64_t>(i)));
        members.back().addresses = {Address::parse(address).value()};
    }
    member->form(members);
    member->wait_formed().value();
    return member;
}

void introduce(std::span<const Channel* const> ranks) {
    std::string addresses;
    for (const Channel* rank : ranks) addresses += hear(*rank, kWithin) + " ";
    for (const Channel* rank : ranks) rank->say(addresses);
}

HostWorld::HostWorld(int size, const Body& body, std::string_view link) {
    std::vector<const Channel*> channels;
    for (int rank = 0; rank < size; ++rank) {
        add([&, rank](const Channel& parent) {
            const auto member = join_host_world(cluster_, parent, {rank, size}, link);
            body(*member, parent);
        });
        channels.push_back(&this->rank(static_cast<std::size_t>(rank)).channel());
    }
    introduce(channels);
}

void leave(Member& member, const Channel& parent) {
    await(parent, "leave", kWithin);
    member.node().close();
}

}  // namespace nexar::testing
