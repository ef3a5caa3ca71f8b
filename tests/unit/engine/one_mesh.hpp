#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/engine/mesh_parts.hpp"

namespace nexar::engine {

inline const Address at_own = address("10.0.0.9:1");
inline const Address at_first = address("10.0.0.1:1");
inline const Address at_second = address("192.168.7.1:1");
inline const Address at_third = address("127.0.0.1:1");
inline const Address at_tunnel = Address::tunnel(node(0).bytes());

/// Node 1, which has the higher rank and so dials at once; node 0 has three addresses.
class OneMesh : public ::testing::Test {
protected:
    explicit OneMesh(const MeshOptions& options = {}) : node_(1, view_, options) {
        node_.mesh().set_addresses({at_own});
    }

    std::vector<std::string> dialed() const {
        std::vector<std::string> texts;
        for (const auto& dial : node_.dials()) texts.push_back(dial.to.text());
        return texts;
    }
    Duration since_start(std::size_t dial) const { return node_.dials().at(dial).at - start_; }
    port::LinkId id(std::size_t dial) const { return node_.dials().at(dial).id; }
    FakeLink& up(std::size_t dial) { return node_.up(id(dial), identity(0)); }
    void down(std::size_t dial, const char* why = "no answer") { node_.down(id(dial), why); }

    View view_ = view_of({{at_third, at_second, at_first}, {at_own}});
    MeshNode node_;
    TimePoint start_ = node_.now();
};

}  // namespace nexar::engine
