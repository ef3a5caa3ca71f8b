#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <array>
#include <nexar/error.hpp>
#include <utility>

#include "byte_stream.hpp"

namespace nexar::bench {

namespace {

constexpr std::size_t kReadBuffer = std::size_t{256} << 10;

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using ContextHandle = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using SessionHandle = std::unique_ptr<SSL, Freed<SSL_free>>;
using BioHandle = std::unique_ptr<BIO, Freed<BIO_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

[[noreturn]] void fail_tls(std::string_view doing) {
    const unsigned long code = ERR_get_error();
    if (code == 0) {
        throw Error(
            Errc::link_closed,
            fmt::format("OpenSSL cannot {}: the other process ended or does not respond", doing));
    }
    std::array<char, 256> text{};
    ERR_error_string_n(code, text.data(), text.size());
    throw Error(Errc::link_closed, fmt::format("OpenSSL cannot {}: {}", doing, text.data()));
}

void require(bool fine, std::string_view doing) {
    if (!fine) fail_tls(doing);
}

ContextHandle make_context(const SSL_METHOD* method) {
    ContextHandle context(SSL_CTX_new(method));
    require(context != nullptr, "create a context");
    require(SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") == 1,
            "choose TLS 1.3 with AES-128-GCM");
    SSL_CTX_set_read_ahead(context.get(), 1);
    SSL_CTX_set_default_read_buffer_len(context.get(), kReadBuffer);
    return context;
}

KeyHandle read_key(const Secret& pem) {
    return pem.reveal([](std::span<const std::byte> bytes) {
        const BioHandle text(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
        return KeyHandle(PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr));
    });
}

class TlsStream final : public ByteStream {
public:
    TlsStream(std::unique_ptr<TcpStream> tcp, ContextHandle context)
        : tcp_(std::move(tcp)), context_(std::move(context)), session_(SSL_new(context_.get())) {
        require(session_ != nullptr && SSL_set_fd(session_.get(), tcp_->descriptor()) == 1,
                "create a session");
    }

    void accept(Waiting waiting) {
        require(SSL_accept(session_.get()) == 1, "accept a client");
        start(waiting);
    }

    void dial(Waiting waiting) {
        require(SSL_connect(session_.get()) == 1, "connect to the server");
        start(waiting);
    }

    void write(std::span<const std::byte> bytes) override {
        Patience patience;
        while (!bytes.empty()) {
            std::size_t written = 0;
            if (SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written) != 1) {
                again(patience, "write");
            }
            bytes = bytes.subspan(written);
        }
    }

    std::size_t read(std::span<std::byte> out) override {
        Patience patience;
        std::size_t got = 0;
        while (SSL_read_ex(session_.get(), out.data(), out.size(), &got) != 1) {
            if (SSL_get_error(session_.get(), 0) == SSL_ERROR_ZERO_RETURN) return 0;
            again(patience, "read");
        }
        return got;
    }

    ~TlsStream() override { SSL_shutdown(session_.get()); }
    TlsStream(const TlsStream&) = delete;
    TlsStream& operator=(const TlsStream&) = delete;

private:
    void start(Waiting waiting) {
        waiting_ = waiting;
        tcp_->start(waiting);
    }

    void again(Patience& patience, std::string_view doing) {
        const int reason = SSL_get_error(session_.get(), 0);
        // A blocking socket reports this only when its own timeout expires.
        const bool blocked = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE;
        if (!blocked || waiting_ == Waiting::sleeping) fail_tls(doing);
        patience.tried();
    }

    std::unique_ptr<TcpStream> tcp_;
    ContextHandle context_;
    SessionHandle session_;
    Waiting waiting_ = Waiting::sleeping;
};

}  // namespace

std::unique_ptr<ByteStream> accept_tls(std::unique_ptr<TcpStream> tcp, Waiting waiting,
                                       const Party& party) {
    ContextHandle context = make_context(TLS_server_method());
    const KeyHandle key = read_key(party.server_key);
    const auto& der = party.server_certificate;
    require(SSL_CTX_use_certificate_ASN1(context.get(), static_cast<int>(der.size()),
                                         reinterpret_cast<const unsigned char*>(der.data())) == 1 &&
                key != nullptr && SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1,
            "use the server's certificate");
    SSL_CTX_set_num_tickets(context.get(), 0);
    auto stream = std::make_unique<TlsStream>(std::move(tcp), std::move(context));
    stream->accept(waiting);
    return stream;
}

std::unique_ptr<ByteStream> dial_tls(std::unique_ptr<TcpStream> tcp, Waiting waiting) {
    // The identity of the server does not affect the speed, so it is not verified.
    auto stream = std::make_unique<TlsStream>(std::move(tcp), make_context(TLS_client_method()));
    stream->dial(waiting);
    return stream;
}

}  // namespace nexar::bench
