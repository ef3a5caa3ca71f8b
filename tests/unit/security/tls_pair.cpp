#include "tls_pair.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace nexar::testing {

using security::Alert;
using security::TlsSession;

StreamPair::StreamPair(const security::TlsOptions& client, const security::TlsOptions& server)
    : client_(TlsSession::create(client).value()), server_(TlsSession::create(server).value()) {
    client_end_.other = &server_end_;
    server_end_.other = &client_end_;
    attach(*client_, client_end_);
    attach(*server_, server_end_);
}

void StreamPair::attach(TlsSession& session, End& end) {
    gnutls_transport_set_ptr(session.native(), &end);
    gnutls_transport_set_push_function(session.native(), push);
    gnutls_transport_set_pull_function(session.native(), pull);
}

ssize_t StreamPair::push(gnutls_transport_ptr_t end, const void* bytes, std::size_t size) {
    auto& inbox = static_cast<End*>(end)->other->inbox;
    const auto* const first = static_cast<const char*>(bytes);
    inbox.insert(inbox.end(), first, first + size);
    return static_cast<ssize_t>(size);
}

ssize_t StreamPair::pull(gnutls_transport_ptr_t end, void* bytes, std::size_t size) {
    auto& inbox = static_cast<End*>(end)->inbox;
    if (inbox.empty()) {
        errno = EAGAIN;
        return -1;
    }
    const auto count = static_cast<std::ptrdiff_t>(std::min(size, inbox.size()));
    std::copy_n(inbox.begin(), count, static_cast<char*>(bytes));
    inbox.erase(inbox.begin(), inbox.begin() + count);
    return count;
}

/// Returns true if this side made progress.
bool StreamPair::drive(TlsSession& session, End& end) {
    const std::size_t before = end.inbox.size() + end.other->inbox.size();
    if (end.ending.code == GNUTLS_E_AGAIN) {
        end.ending.code = gnutls_handshake(session.native());
        if (end.ending.code < 0 && gnutls_error_is_fatal(end.ending.code) == 0) {
            end.ending.code = GNUTLS_E_AGAIN;
        } else if (end.ending.code < 0) {
            if (end.ending.code == GNUTLS_E_FATAL_ALERT_RECEIVED && !session.refusal()) {
                end.ending.received = static_cast<Alert>(gnutls_alert_get(session.native()));
            }
            gnutls_alert_send_appropriate(session.native(), end.ending.code);
        }
    } else if (end.ending.code == 0 && !end.ending.received) {
        std::array<char, 64> data{};
        if (gnutls_record_recv(session.native(), data.data(), data.size()) ==
            GNUTLS_E_FATAL_ALERT_RECEIVED) {
            end.ending.received = static_cast<Alert>(gnutls_alert_get(session.native()));
        }
    }
    return before != end.inbox.size() + end.other->inbox.size();
}

void StreamPair::run() {
    bool moved = true;
    while (moved) {
        moved = drive(*client_, client_end_);
        moved = drive(*server_, server_end_) || moved;
    }
}

MessagePair::MessagePair(const security::TlsOptions& client, const security::TlsOptions& server)
    : client_(TlsSession::create(client).value()), server_(TlsSession::create(server).value()) {
    client_end_.other = &server_end_;
    server_end_.other = &client_end_;
    attach(*client_, client_end_);
    attach(*server_, server_end_);
}

void MessagePair::attach(TlsSession& session, End& end) {
    gnutls_session_set_ptr(session.native(), &end);
    gnutls_handshake_set_read_function(
        session.native(),
        [](gnutls_session_t native, gnutls_record_encryption_level_t level,
           gnutls_handshake_description_t type, const void* bytes, std::size_t size) {
            if (type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC) return 0;
            auto& from = *static_cast<End*>(gnutls_session_get_ptr(native));
            const auto* const first = static_cast<const unsigned char*>(bytes);
            std::vector<unsigned char> message(first, first + size);
            if (from.change) from.change(type, message);
            from.sent_bytes += message.size();
            from.other->inbox.push_back({level, std::move(message)});
            return 0;
        });
    gnutls_alert_set_read_function(
        session.native(), [](gnutls_session_t native, gnutls_record_encryption_level_t,
                             gnutls_alert_level_t, gnutls_alert_description_t alert) {
            static_cast<End*>(gnutls_session_get_ptr(native))->ending.sent =
                static_cast<Alert>(alert);
            return 0;
        });
}

void MessagePair::step(TlsSession& session, End& end) {
    if (end.ending.code != GNUTLS_E_AGAIN) return;
    end.ending.code = gnutls_handshake(session.native());
    if (end.ending.code == 0) return;
    if (gnutls_error_is_fatal(end.ending.code) == 0) {
        end.ending.code = GNUTLS_E_AGAIN;
        return;
    }
    gnutls_alert_send_appropriate(session.native(), end.ending.code);
    end.other->ending.received = end.ending.sent;
}

bool MessagePair::deliver(TlsSession& session, End& end) {
    if (end.inbox.empty() || end.ending.code != GNUTLS_E_AGAIN) return false;
    const Message message = std::move(end.inbox.front());
    end.inbox.pop_front();
    if (!session.admit(message.bytes.size())) {
        end.ending.code = GNUTLS_E_FATAL_ALERT_RECEIVED;
        end.other->ending.received = end.ending.sent;
        return false;
    }
    end.ending.code = gnutls_handshake_write(session.native(), message.level, message.bytes.data(),
                                             message.bytes.size());
    if (end.ending.code != 0) return false;
    end.ending.code = GNUTLS_E_AGAIN;
    step(session, end);
    return true;
}

void MessagePair::run() {
    step(*client_, client_end_);
    bool moved = true;
    while (moved) {
        moved = deliver(*server_, server_end_);
        moved = deliver(*client_, client_end_) || moved;
    }
}

}  // namespace nexar::testing
