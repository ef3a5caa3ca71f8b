// Remote procedure calls between ranks: a small dictionary that is spread over three ranks.
#include <iostream>
#include <map>
#include <mutex>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// One rank's part of the dictionary. Calls arrive on several threads at once.
class Shelf {
public:
    explicit Shelf(const nexar::Node& node)
        : put_(node.serve("put", [this](std::string_view pair) { put(pair); })),
          get_(node.serve("get", [this](std::string_view word) { return get(word); })) {}

private:
    void put(std::string_view pair) {
        const std::size_t at = pair.find('=');
        const std::scoped_lock lock(mutex_);
        words_[std::string(pair.substr(0, at))] = pair.substr(at + 1);
    }

    std::string get(std::string_view word) {
        const std::scoped_lock lock(mutex_);
        const auto found = words_.find(word);
        if (found == words_.end()) throw std::out_of_range("no entry for " + std::string(word));
        return found->second;
    }

    std::mutex mutex_;
    std::map<std::string, std::string, std::less<>> words_;
    nexar::Served put_;  // declared last: calls end before the other members are gone
    nexar::Served get_;
};

int rank_of(std::string_view word) {
    return static_cast<int>(word.size() % 3);
}

void use(const nexar::Node& node) {
    for (const std::string pair : {"sun=sol", "moon=luna", "water=aqua"}) {
        node.call<void>(rank_of(pair.substr(0, pair.find('='))), "put", pair).wait();
    }
    // All calls are in flight at the same time; each has its own timeout.
    nexar::CallOptions soon;
    soon.timeout = std::chrono::seconds(5);
    std::vector<nexar::Work<std::string>> answers;
    for (const std::string word : {"sun", "moon", "water", "fire"}) {
        answers.push_back(node.call<std::string>(rank_of(word), "get", word, soon));
    }
    for (auto& answer : answers) {
        if (const auto result = answer.result()) {
            std::cout << *result << "\n";
        } else {
            std::cout << result.error().what() << "\n";
        }
    }
}

}  // namespace

int main() {
    try {
        std::vector<nexar::Node> nodes = nexar::local_cluster(3);
        const Shelf first(nodes[0]);
        const Shelf second(nodes[1]);
        const Shelf third(nodes[2]);
        use(nodes[0]);
        return 0;
    } catch (const nexar::Error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
