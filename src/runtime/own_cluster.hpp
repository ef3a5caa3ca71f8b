#pragma once

#include <memory>
#include <nexar/result.hpp>

#include "base/view.hpp"
#include "runtime/node_body.hpp"
#include "security/cluster_ca.hpp"
#include "security/credentials.hpp"

namespace nexar::detail {

/// A cluster whose members all live in this process: it has its own certificate authority, needs no
/// seed, and no other process can join.
class OwnCluster {
public:
    static Result<OwnCluster> make(runtime::HostServices services);

    /// Opens one more member, with the next rank and new credentials; it is not connected yet.
    Result<std::shared_ptr<NodeBody>> open(std::shared_ptr<runtime::Loop> loop,
                                           NodeBody::Setup setup);

    /// All members opened so far.
    const View& view() const noexcept { return view_; }

private:
    OwnCluster(std::unique_ptr<const security::ClusterCa> ca, runtime::HostServices services);

    std::unique_ptr<const security::ClusterCa> ca_;
    runtime::HostServices services_;
    View view_{.epoch = Epoch(1)};
};

}  // namespace nexar::detail
