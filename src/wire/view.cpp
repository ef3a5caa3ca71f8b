#include "wire/view.hpp"

#include <algorithm>
#include <iterator>

namespace nexar::wire {

std::vector<AddressText> in_wire(const std::vector<Address>& addresses) {
    std::vector<AddressText> texts;
    texts.reserve(addresses.size());
    for (const Address& address : addresses) texts.push_back({address.unmapped().text()});
    return texts;
}

std::vector<Address> from_wire(const std::vector<AddressText>& addresses) {
    std::vector<Address> values;
    values.reserve(addresses.size());
    for (const AddressText& one : addresses) values.push_back(Address::parse(one.text).value());
    return values;
}

ViewMember in_wire(const Member& member) {
    return {.node = member.node.bytes(),
            .incarnation = member.incarnation.value(),
            .rank = member.rank,
            .addresses = in_wire(member.addresses),
            .key_hash = member.key_hash,
            .token = member.token,
            .host = member.host};
}

Member from_wire(const ViewMember& member) {
    return {.node = NodeId(member.node),
            .incarnation = Incarnation(member.incarnation),
            .rank = member.rank,
            .addresses = from_wire(member.addresses),
            .host = member.host,
            .key_hash = member.key_hash,
            .token = member.token};
}

ViewFrame in_wire(const View& view) {
    ViewFrame frame{.epoch = view.epoch};
    if (view.witness) {
        frame.witness = view.witness->seed.bytes();
        frame.witness_incarnation = view.witness->incarnation.value();
    }
    frame.next_rank = view.next_rank;
    frame.spent.reserve(view.spent.size());
    for (const nexar::SpentToken& one : view.spent) frame.spent.push_back({one.token, one.uses});
    frame.left = view.left;
    frame.members.reserve(view.members.size());
    for (const Member& member : view.members) frame.members.push_back(in_wire(member));
    return frame;
}

View from_wire(const ViewFrame& frame) {
    View view{.epoch = frame.epoch};
    if (frame.witness != Id{}) {
        view.witness = Witness{.seed = NodeId(frame.witness),
                               .incarnation = Incarnation(frame.witness_incarnation)};
    }
    view.next_rank = frame.next_rank;
    view.spent.reserve(frame.spent.size());
    for (const SpentToken& one : frame.spent) view.spent.push_back({one.token, one.uses});
    view.left = frame.left;
    view.members.reserve(frame.members.size());
    for (const ViewMember& member : frame.members) view.members.push_back(from_wire(member));
    return view;
}

}  // namespace nexar::wire
