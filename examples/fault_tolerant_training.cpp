// Stochastic gradient descent that survives the death of ranks and still finds the right
// parameters. Start it with
//
//     nexar run -n 4 --on-failure continue -- ./fault_tolerant_training
//
// Two of the ranks kill themselves on the way.
#include <array>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <stdexcept>

namespace {

constexpr std::array<double, 3> kTruth{2.0, -3.5, 0.25};
constexpr std::size_t kSamples = 3000;
constexpr int kEpochs = 300;
constexpr double kRate = 0.5;

using Weights = std::array<double, kTruth.size()>;

/// The inputs of a sample, equal on every rank, between -1 and 1.
Weights inputs(std::size_t sample) {
    Weights values{};
    std::uint64_t state = sample + 1;
    for (double& value : values) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        value = static_cast<double>(state >> 11U) / 9007199254740992.0 * 2 - 1;
    }
    return values;
}

double product(const Weights& left, const Weights& right) {
    double sum = 0;
    for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
    return sum;
}

/// The model: save() and restore() are all that nexar::resilient() needs.
struct Model {
    Weights weights{};
    int epoch = 0;

    void save() {
        saved_weights = weights;
        saved_epoch = epoch;
    }
    void restore() {
        weights = saved_weights;
        epoch = saved_epoch;
    }

    Weights saved_weights{};
    int saved_epoch = 0;
};

/// The gradient over this rank's share of the samples. The share depends on the number of ranks, so
/// that the survivors take over the samples of the ranks that failed.
Weights gradient(const Model& model, const nexar::Communicator& ranks) {
    Weights sum{};
    const auto stride = static_cast<std::size_t>(ranks.size());
    for (auto i = static_cast<std::size_t>(ranks.rank()); i < kSamples; i += stride) {
        const Weights x = inputs(i);
        const double error = product(model.weights, x) - product(kTruth, x);
        for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += error * x[j] / kSamples;
    }
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    const nexar::Node node = nexar::join(argc, argv);
    const int me = node.rank();
    Model model;
    const nexar::Communicator survivors =
        nexar::resilient(node.world(), model, [&](nexar::Communicator& ranks) {
            const bool dies = (me == 1 && model.epoch == 100) || (me == 3 && model.epoch == 200);
            if (dies) std::raise(SIGKILL);
            Weights total = gradient(model, ranks);
            ranks.all_reduce(total, nexar::sum).wait();
            for (std::size_t j = 0; j < total.size(); ++j) model.weights[j] -= kRate * total[j];
            return ++model.epoch < kEpochs;
        });
    for (std::size_t j = 0; j < kTruth.size(); ++j) {
        if (std::abs(model.weights[j] - kTruth[j]) > 1e-6) {
            throw std::runtime_error("the parameters are wrong");
        }
    }
    if (survivors.rank() == 0) {
        std::printf("%d epochs, %d of the ranks are left, parameters %.6f %.6f %.6f\n", model.epoch,
                    survivors.size(), model.weights[0], model.weights[1], model.weights[2]);
    }
}
