// A model keeps its gradients in one vector per layer. In every training step one operation
// averages all of them over the ranks, in place and without packing them together. Start it with
// `nexar run -n 4 -- ./bucketed_gradients`.
#include <array>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <vector>

namespace {

constexpr std::array<std::size_t, 5> kLayers{300'000, 7, 65'536, 0, 12'345};
constexpr int kSteps = 3;

/// The gradient of one weight in one step, before it is scaled by the rank. Whole numbers, so that
/// averages are exact.
float gradient(std::size_t layer, std::size_t weight, int step) {
    return static_cast<float>(weight % 89 + 3 * layer) + static_cast<float>(step);
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    std::vector<std::vector<float>> layers(kLayers.begin(), kLayers.end());
    const auto averaging =
        world.prepare([&](auto& ranks) { return ranks.all_reduce(layers, nexar::average); });

    const auto mine = static_cast<float>(world.rank() + 1);
    const float mean = static_cast<float>(world.size() + 1) / 2;
    for (int step = 0; step < kSteps; ++step) {
        for (std::size_t layer = 0; layer < layers.size(); ++layer) {
            for (std::size_t i = 0; i < layers[layer].size(); ++i) {
                layers[layer][i] = mine * gradient(layer, i, step);
            }
        }
        averaging.start().wait();
        for (std::size_t layer = 0; layer < layers.size(); ++layer) {
            for (std::size_t i = 0; i < layers[layer].size(); ++i) {
                if (layers[layer][i] != mean * gradient(layer, i, step)) {
                    throw std::runtime_error("wrong average");
                }
            }
        }
        if (world.rank() == 0) std::printf("step %d: averaged %zu layers\n", step, layers.size());
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
