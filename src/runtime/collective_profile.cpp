#include "runtime/collective_profile.hpp"

#include <chrono>

#include "base/try.hpp"

namespace nexar::runtime {

namespace {

double seconds(Duration duration) noexcept {
    return std::chrono::duration<double>(duration).count();
}

double per_byte(std::uint64_t bytes_per_second) noexcept {
    return 1.0 / static_cast<double>(bytes_per_second);
}

}  // namespace

Result<schedule::Profile> collective_profile(const Config& config) {
    schedule::Profile profile;
    profile.forced = config.text("collective_algorithm");
    NEXAR_TRY(schedule::check_forced(profile.forced));
    profile.segment_bytes = config.size("collective_segment");
    if (config.choice("reproducibility") == "runs") {
        profile.reproducibility = schedule::Reproducibility::runs;
    }
    profile.rates = {.latency = seconds(config.duration("fabric_latency")),
                     .per_message = seconds(config.duration("fabric_per_message")),
                     .per_byte = per_byte(config.size("fabric_bandwidth")),
                     .both_byte = per_byte(config.size("fabric_both_bandwidth")),
                     .reduce_byte = per_byte(config.size("fabric_reduce")),
                     .copy_byte = per_byte(config.size("fabric_copy")),
                     .fill_bytes = static_cast<double>(config.size("fabric_fill")),
                     .ranks_per_core = config.real("fabric_ranks_per_core")};
    return profile;
}

}  // namespace nexar::runtime
