#include "chaos/machine.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "link/quic/open_carrier.hpp"

namespace nexar::chaos {

namespace {

template <class Id>
Id id_from(Random& random) {
    std::array<std::byte, Id::kBytes> bytes{};
    for (std::byte& one : bytes) one = static_cast<std::byte>(random.next() >> 56U);
    return Id(bytes);
}

}  // namespace

runtime::HostServices services_of(const sim::World& world, Random random) {
    const auto shared = std::make_shared<Random>(random);
    runtime::HostServices services;
    services.wall_clock = [&world] {
        constexpr std::chrono::hours kStart{24 * 365 * 60};
        const auto passed = world.now().time_since_epoch();
        return security::WallTime(kStart) +
               std::chrono::duration_cast<security::WallTime::duration>(passed);
    };
    services.new_key = [] { return security::KeyPair::generate(); };
    services.new_node_id = [shared]() -> Result<NodeId> { return id_from<NodeId>(*shared); };
    services.new_cluster_id = [shared]() -> Result<ClusterId> {
        return id_from<ClusterId>(*shared);
    };
    services.link_random = [shared](std::span<std::uint8_t> out) {
        for (std::uint8_t& one : out) one = static_cast<std::uint8_t>(shared->next() >> 56U);
    };
    return services;
}

StateStore::StateStore() {
    // A seed syncs every vote to disk, which takes far longer than all else.
    std::error_code none;
    const std::filesystem::path memory = "/dev/shm";
    const auto place = std::filesystem::is_directory(memory, none)
                           ? memory
                           : std::filesystem::temp_directory_path();
    std::string pattern = (place / "chaos-sim-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        throw Error(Errc::bad_config,
                    "cannot create a directory for the state of a seed in " + place.string());
    }
    path_ = pattern;
}

StateStore::~StateStore() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

Seed::Seed(sim::DatagramNet& net, const Address& address, const SeedOptions& options, Config config,
           Random random)
    : net_(&net) {
    server_ = runtime::SeedServer::open(options, std::move(config),
                                        services_of(net.world(), random), net.world().now())
                  .value();
    host_ = &net.add_host(address, quic::endpoint_options(server_->carrier_options().value()));
    server_->serve(*host_, net.world().now()).value();
    host_->driven_only_by(*this);
    net.world().add(*this);
}

Seed::~Seed() {
    net_->world().remove(*this);
    net_->kill_process(*host_);
    host_->driven_by_nobody();
}

void Seed::turn(TimePoint now) {
    server_->turn(now);
    report(server_->ended());
    report(server_->view());
}

void Seed::report(const std::optional<View>& view) {
    if (!view || view->epoch <= epoch_) return;
    epoch_ = view->epoch;
    if (on_view) on_view(*view);
}

}  // namespace nexar::chaos
