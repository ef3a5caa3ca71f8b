#include "api_pair.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nexar/node.hpp>
#include <utility>

#include "contender.hpp"
#include "party.hpp"
#include "runtime/node_body.hpp"
#include "side.hpp"

namespace nexar::bench {

namespace {

Cores find_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) fail_system("ask for the allowed cores");
    std::array<std::size_t, 2> found{};
    std::size_t count = 0;
    for (std::size_t core = 0; core < CPU_SETSIZE && count < found.size(); ++core) {
        if (CPU_ISSET(core, &set)) found[count++] = core;
    }
    if (count == 1) found[1] = found[0];
    return {.first = found[0], .second = found[1]};
}

/// One of the two nodes; closed at its end.
class ApiNode {
public:
    ApiNode(const Party& party, bool server)
        : party_(&party),
          body_(detail::NodeBody::open(
                    runtime::make_loop({}).value(),
                    {.credentials = server ? party.server : party.client, .listen = loopback(0)})
                    .value()),
          node_(body_) {}

    /// A server does this before the client can know its port: it turns strangers away.
    void form(Rank me, std::uint16_t server_port) {
        const std::array members{
            runtime::Member{.node = party_->server->identity().node,
                            .address = loopback(server_port)},
            runtime::Member{.node = party_->client->identity().node, .address = loopback(0)}};
        body_->form(members, me).value();
    }
    Communicator world() {
        body_->wait_formed(body_->now() + kPatience).value();
        return node_.world();
    }
    std::uint16_t port() const noexcept { return body_->address().port(); }

private:
    const Party* party_;
    std::shared_ptr<detail::NodeBody> body_;
    Node node_;
};

/// Puts the thread back where it was.
class KeptAffinity {
public:
    KeptAffinity() {
        if (sched_getaffinity(0, sizeof set_, &set_) != 0) fail_system("ask where it runs");
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
        node.form(Rank(0), node.port());
        client.send(Listening{.port = node.port()});
        Communicator world = node.world();
        pair.server(world, client);
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
    node.form(Rank(1), port);
    Communicator world = node.world();
    pair.client(world, server);
}

}  // namespace

Cores two_cores() {
    static const Cores cores = find_cores();
    return cores;
}

void pin_thread(std::size_t core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail_system("pin a thread to a core");
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
        // A failure of the server explains what was seen here.
        if (const std::string told = own.last_words(); !told.empty()) {
            throw Error(Errc::link_closed, told);
        }
        throw;
    }
}

}  // namespace nexar::bench
