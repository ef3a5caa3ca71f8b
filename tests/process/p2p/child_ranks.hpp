#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"

namespace nexar::testing {

/// Ranks that are children of the test. They end with this object.
class ChildRanks {
public:
    ChildProcess& rank(std::size_t rank) { return *ranks_[rank]; }
    std::size_t size() const { return ranks_.size(); }

    /// Sends a message to all ranks.
    void tell_all(std::string_view message) const;
    /// Waits until all ranks have sent this message.
    void await_all(std::string_view expected) const;
    /// The other side of meet().
    void let_meet() const;
    /// Waits for the end of all ranks, which must succeed.
    void expect_end();

protected:
    ChildRanks() = default;
    ~ChildRanks() = default;

    /// Starts the next rank.
    void add(const std::function<void(const Channel& parent)>& body);

private:
    std::vector<std::unique_ptr<ChildProcess>> ranks_;
};

/// Waits, without using nexar, until all ranks have called this.
void meet(const Channel& parent);

}  // namespace nexar::testing
