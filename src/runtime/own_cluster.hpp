#pragma once

#include <memory>
#include <nexar/result.hpp>

#include "base/view.hpp"
#include "runtime/node_body.hpp"
#include "security/cluster_ca.hpp"
#include "security/credentials.hpp"

namespace nexar::detail {

/// A cluster whose members all live in this process: it has a certificate authority of its own,
/// needs no seed, and nobody else can join.
class OwnCluster {
public:
    static Result<OwnCluster> make();

    /// Opens one more member, of the next rank; its credentials are set here. Not connected yet.
    Result<std::shared_ptr<NodeBody>> open(std::shared_ptr<runtime::Loop> loop,
                                           NodeBody::Setup setup);

    /// All members that were opened.
    const View& view() const noexcept { return view_; }

private:
    OwnCluster(std::unique_ptr<const security::ClusterCa> ca, security::WallTime now);

    std::unique_ptr<const security::ClusterCa> ca_;
    security::WallTime now_;
    View view_{.epoch = Epoch(1)};
};

}  // namespace nexar::detail
