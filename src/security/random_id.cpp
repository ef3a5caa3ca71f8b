#include "security/random_id.hpp"

#include <gnutls/crypto.h>

#include "security/gnutls_handle.hpp"

namespace nexar::security {

namespace {

template <class Id>
Result<Id> random_id() {
    std::array<std::byte, Id::kBytes> bytes{};
    const int code = gnutls_rnd(GNUTLS_RND_RANDOM, bytes.data(), bytes.size());
    if (code < 0) return library_error("taking random bytes", code);
    return Id(bytes);
}

}  // namespace

Result<ClusterId> new_cluster_id() {
    return random_id<ClusterId>();
}

Result<NodeId> new_node_id() {
    return random_id<NodeId>();
}

Result<TokenId> new_token_id() {
    return random_id<TokenId>();
}

}  // namespace nexar::security
