#include "api_pair.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "api_node.hpp"
#include "contender.hpp"
#include "party.hpp"

namespace nexar::bench {

namespace {

Cores find_cores() {
    const std::vector<std::size_t> allowed = allowed_cores();
    return {.first = allowed.front(), .second = allowed[allowed.size() > 1 ? 1 : 0]};
}

/// Restores the CPU affinity of the thread at its end.
class KeptAffinity {
public:
    KeptAffinity() {
        if (sched_getaffinity(0, sizeof set_, &set_) != 0)
            fail_system("read the CPU affinity of a thread");
    }
    KeptAffinity(const KeptAffinity&) = delete;
    KeptAffinity& operator=(const KeptAffinity&) = delete;
    ~KeptAffinity() { sched_setaffinity(0, sizeof set_, &set_); }

private:
    cpu_set_t set_{};
};

[[noreturn]] void run_server(const ApiPair& pair, const Party& party, Control& client) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 0;
    try {
        pin_thread(pair.server_core);
        ApiNode node(party, true);
        client.send(Listening{.port = node.port()});
        pair.server(node.formed(), client);
    } catch (const std::exception& failure) {
        client.send_failure(failure.what());
        code = 1;
    }
    std::fflush(nullptr);
    ::_exit(code);
}

void run_client(const ApiPair& pair, const Party& party, Control& server) {
    const KeptAffinity kept;
    pin_thread(pair.client_core);
    const auto port = server.receive<Listening>().port;
    ApiNode node(party, false);
    node.dial(port);
    pair.client(node.formed(), server);
}

}  // namespace

Cores two_cores() {
    static const Cores cores = find_cores();
    return cores;
}

void run_api_pair(const ApiPair& pair) {
    const Party party = make_party();
    auto [own, theirs] = Control::make_pair();
    std::fflush(nullptr);
    const pid_t server = fork();
    if (server < 0) fail_system("start a server process");
    if (server == 0) run_server(pair, party, theirs);
    {
        const Control server_end(std::move(theirs));
    }
    const auto end_server = [server](Control* /*other*/) {
        ::kill(server, SIGKILL);
        ::waitpid(server, nullptr, 0);
    };
    const std::unique_ptr<Control, decltype(end_server)> ending(&own, end_server);
    try {
        run_client(pair, party, own);
    } catch (const std::exception&) {
        // The server's failure is the cause of the one here.
        if (const std::string told = own.last_words(); !told.empty()) {
            throw Error(Errc::link_closed, told);
        }
        throw;
    }
}

}  // namespace nexar::bench
