#include "run/embedded_seed.hpp"

#include <utility>

namespace nexar::run {

struct EmbeddedSeed::Body {};

EmbeddedSeed::EmbeddedSeed(std::unique_ptr<Body> body, std::string join) noexcept
    : body_(std::move(body)), join_(std::move(join)) {}
EmbeddedSeed::EmbeddedSeed(EmbeddedSeed&&) noexcept = default;
EmbeddedSeed& EmbeddedSeed::operator=(EmbeddedSeed&&) noexcept = default;
EmbeddedSeed::~EmbeddedSeed() = default;

Result<EmbeddedSeed> EmbeddedSeed::start(const Options& /*options*/) {
    return Error(Errc::unsupported, "this build hosts no seed yet; see --no-seed");
}

}  // namespace nexar::run
