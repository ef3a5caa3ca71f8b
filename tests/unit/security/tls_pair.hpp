#pragma once

#include <gnutls/gnutls.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "security/tls_session.hpp"

namespace nexar::testing {

/// How a handshake ended for one side.
struct Ending {
    int code = GNUTLS_E_AGAIN;                  // of gnutls_handshake()
    std::optional<security::Alert> received{};  // from the other side
    std::optional<security::Alert> sent{};      // QUIC only: the last one

    bool completed() const noexcept { return code == 0; }
};

/// Two sessions on byte streams in memory, as over TCP.
class StreamPair {
public:
    StreamPair(const security::TlsOptions& client, const security::TlsOptions& server);

    /// Drives both sides until neither makes progress.
    void run();

    security::TlsSession& client() noexcept { return *client_; }
    security::TlsSession& server() noexcept { return *server_; }
    const Ending& client_ending() const noexcept { return client_end_.ending; }
    const Ending& server_ending() const noexcept { return server_end_.ending; }

private:
    struct End {
        std::deque<char> inbox{};
        End* other = nullptr;
        Ending ending{};
    };

    static void attach(security::TlsSession& session, End& end);
    static bool drive(security::TlsSession& session, End& end);
    static ssize_t push(gnutls_transport_ptr_t end, const void* bytes, std::size_t size);
    static ssize_t pull(gnutls_transport_ptr_t end, void* bytes, std::size_t size);

    std::unique_ptr<security::TlsSession> client_;
    std::unique_ptr<security::TlsSession> server_;
    End client_end_;
    End server_end_;
};

/// Two sessions that exchange handshake messages by encryption level, as QUIC does: it uses the
/// session pointer, gets alerts through a function, and sends the appropriate alert for a failed
/// handshake.
class MessagePair {
public:
    using Tamper =
        std::function<void(gnutls_handshake_description_t type, std::vector<unsigned char>&)>;

    MessagePair(const security::TlsOptions& client, const security::TlsOptions& server);

    /// Passes every message of the server through `change`.
    void tamper(Tamper change) { server_end_.change = std::move(change); }

    void run();

    security::TlsSession& client() noexcept { return *client_; }
    security::TlsSession& server() noexcept { return *server_; }
    const Ending& client_ending() const noexcept { return client_end_.ending; }
    const Ending& server_ending() const noexcept { return server_end_.ending; }

    /// Handshake bytes that each side has sent.
    std::size_t client_bytes() const noexcept { return client_end_.sent_bytes; }
    std::size_t server_bytes() const noexcept { return server_end_.sent_bytes; }

private:
    struct Message {
        gnutls_record_encryption_level_t level{};
        std::vector<unsigned char> bytes{};
    };
    struct End {
        std::deque<Message> inbox{};
        End* other = nullptr;
        Tamper change{};
        std::size_t sent_bytes = 0;
        Ending ending{};
    };

    static void attach(security::TlsSession& session, End& end);
    static void step(security::TlsSession& session, End& end);
    static bool deliver(security::TlsSession& session, End& end);

    std::unique_ptr<security::TlsSession> client_;
    std::unique_ptr<security::TlsSession> server_;
    End client_end_;
    End server_end_;
};

}  // namespace nexar::testing
