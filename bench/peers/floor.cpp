// The limits of this machine, to put the rows of run.sh into perspective: memory, AES and the
// kernel's UDP on loopback, each with as few processes as possible.

#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace {

constexpr std::size_t kBlock = 64000;  // close to the largest datagram on loopback

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void need(bool fine, const char* what) {
    if (fine) return;
    std::perror(what);
    std::exit(1);
}

/// Seconds of one call: the median of several runs of about 50 ms.
double seconds_of(const std::function<void()>& call) {
    std::vector<double> runs;
    for (int run = 0; run < 5; ++run) {
        const double begin = now();
        int calls = 0;
        do {
            call();
            ++calls;
        } while (now() - begin < 0.05);
        runs.push_back((now() - begin) / calls);
    }
    std::ranges::sort(runs);
    return runs[runs.size() / 2];
}

double memcpy_rate() {
    constexpr std::size_t kLarge = std::size_t{64} << 20;
    std::vector<char> from(kLarge, 1);
    std::vector<char> to(kLarge, 2);
    return kLarge / seconds_of([&] {
               std::memcpy(to.data(), from.data(), kLarge);
               asm volatile("" : : "r"(to.data()) : "memory");
           });
}

double aes_rate() {
    EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
    const std::array<unsigned char, 16> key{1, 2, 3};
    std::array<unsigned char, 12> nonce{};
    std::vector<unsigned char> block(kBlock + 16, 7);
    need(EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nullptr, key.data(), nonce.data()) == 1,
         "AES");
    const double seconds = seconds_of([&] {
        int size = 0;
        ++nonce[0];
        EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data());
        EVP_EncryptUpdate(context, block.data(), &size, block.data(), kBlock);
        EVP_EncryptFinal_ex(context, block.data() + size, &size);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, block.data() + kBlock);
    });
    EVP_CIPHER_CTX_free(context);
    return kBlock / seconds;
}

/// Two sockets on loopback, each connected to the other.
std::array<int, 2> connected_pair() {
    std::array<int, 2> ends{};
    std::array<sockaddr_in, 2> names{};
    for (int i = 0; i < 2; ++i) {
        ends[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        names[i] = {.sin_family = AF_INET,
                    .sin_port = 0,
                    .sin_addr = {htonl(INADDR_LOOPBACK)},
                    .sin_zero = {}};
        need(bind(ends[i], reinterpret_cast<sockaddr*>(&names[i]), sizeof names[i]) == 0, "bind");
        socklen_t size = sizeof names[i];
        need(getsockname(ends[i], reinterpret_cast<sockaddr*>(&names[i]), &size) == 0,
             "getsockname");
    }
    for (int i = 0; i < 2; ++i) {
        need(connect(ends[i], reinterpret_cast<sockaddr*>(&names[1 - i]), sizeof names[i]) == 0,
             "connect");
    }
    return ends;
}

void await(int end, std::vector<char>& into) {
    while (recv(end, into.data(), into.size(), 0) < 0) {
    }
}

/// Bytes per second of one processor that both sends and receives datagrams.
double udp_rate() {
    const auto ends = connected_pair();
    std::vector<char> block(kBlock, 5);
    const double seconds = seconds_of([&] {
        send(ends[0], block.data(), block.size(), 0);
        await(ends[1], block);
    });
    close(ends[0]);
    close(ends[1]);
    return kBlock / seconds;
}

/// Seconds that a small datagram takes from one process to another; both processes busy-poll.
double udp_latency() {
    const auto ends = connected_pair();
    std::vector<char> small(60, 5);
    const pid_t echo = fork();
    need(echo >= 0, "fork");
    if (echo == 0) {
        alarm(30);
        for (;;) {
            await(ends[1], small);
            if (small[0] == 0) _exit(0);
            send(ends[1], small.data(), small.size(), 0);
        }
    }
    const double seconds = seconds_of([&] {
        send(ends[0], small.data(), small.size(), 0);
        await(ends[0], small);
    });
    small[0] = 0;
    send(ends[0], small.data(), small.size(), 0);
    waitpid(echo, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    return seconds / 2;
}

}  // namespace

int main() {
    std::printf(
        "floor: memcpy %.1f GB/s, AES-128-GCM %.2f GB/s, sending and receiving UDP datagrams %.2f "
        "GB/s, each on one processor; a UDP datagram of 60 bytes takes %.1f us\n",
        memcpy_rate() * 1e-9, aes_rate() * 1e-9, udp_rate() * 1e-9, udp_latency() * 1e6);
    return 0;
}
