#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "contender.hpp"
#include "party.hpp"

namespace nexar::bench {

/// A connected byte stream: TCP, or TLS over it. Calls throw nexar::Error when they fail or take
/// longer than kPatience.
class ByteStream {
public:
    virtual ~ByteStream() = default;

    virtual void write(std::span<const std::byte> bytes) = 0;

    /// Reads at least one byte; returns 0 at the end of the peer's stream.
    virtual std::size_t read(std::span<std::byte> out) = 0;
};

/// A connected TCP socket with Nagle's algorithm off.
class TcpStream final : public ByteStream {
public:
    /// Takes ownership of the descriptor, which blocks until start() sets how it waits.
    explicit TcpStream(int descriptor);
    ~TcpStream() override;
    TcpStream(const TcpStream&) = delete;
    TcpStream& operator=(const TcpStream&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    void start(Waiting waiting);

    void write(std::span<const std::byte> bytes) override;
    std::size_t read(std::span<std::byte> out) override;

private:
    int descriptor_;
    Waiting waiting_ = Waiting::sleeping;
};

/// A TCP socket that waits for one client on the loopback address.
class TcpListener {
public:
    TcpListener();
    ~TcpListener();
    TcpListener(const TcpListener&) = delete;
    TcpListener& operator=(const TcpListener&) = delete;

    std::uint16_t port() const;
    std::unique_ptr<TcpStream> accept() const;

private:
    int descriptor_;
};

std::unique_ptr<TcpStream> dial_tcp(std::uint16_t port);

/// Limits the retries of a call that would block: tried() throws after kPatience.
class Patience {
public:
    Patience();
    void tried();

private:
    double end_;
    unsigned tries_ = 0;
};

/// TLS 1.3 by OpenSSL with AES-128-GCM, a read buffer of 256 KiB and no kernel TLS. Performs the
/// handshake.
std::unique_ptr<ByteStream> accept_tls(std::unique_ptr<TcpStream> tcp, Waiting waiting,
                                       const Party& party);
std::unique_ptr<ByteStream> dial_tls(std::unique_ptr<TcpStream> tcp, Waiting waiting);

}  // namespace nexar::bench
