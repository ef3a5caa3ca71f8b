#include <iostream>
#include <nexar/nexar.hpp>
#include <vector>

int main() {
    // Two real nodes in this process, with encrypted QUIC between them.
    std::vector<nexar::Node> nodes = nexar::local_cluster(2);
    nexar::Communicator here = nodes[0].world();
    nexar::Communicator there = nodes[1].world();

    std::vector<float> gradient(1 << 20, 0.5F);
    std::vector<float> received(1 << 20);
    nexar::Work<> sending = here.send(std::span(gradient), 1, 7);  // to rank 1, with tag 7
    const nexar::Status status = there.recv(std::span(received), nexar::any_source, 7).wait();
    sending.wait();  // gradient may be changed again
    std::cout << "got " << status.count<float>() << " floats from rank " << status.source << '\n';
}
