#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/identity.hpp"
#include "base/secret.hpp"
#include "security/credentials.hpp"

namespace nexar::bench {

/// A cluster of two nodes for one run. Created before the fork, so that both processes have it.
struct Party {
    ClusterId cluster{};
    std::shared_ptr<const security::Credentials> client{};
    std::shared_ptr<const security::Credentials> server{};

    // The server's certificate and key, in the formats that OpenSSL needs.
    std::vector<std::byte> server_certificate{};  // DER
    Secret server_key{};                          // PEM
};

/// Throws nexar::Error.
Party make_party();

}  // namespace nexar::bench
