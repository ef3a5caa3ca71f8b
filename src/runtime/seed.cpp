#include <nexar/seed.hpp>

#include "runtime/seed_body.hpp"

namespace nexar {

Seed::Seed(const SeedOptions& options)
    : body_(detail::SeedBody::open(options, runtime::HostServices::of_this_machine()).value()) {}

Seed::Seed(Seed&&) noexcept = default;

Seed& Seed::operator=(Seed&& other) noexcept {
    if (this == &other) return *this;
    detail::SeedBody::let_go(std::move(body_));
    body_ = std::move(other.body_);
    return *this;
}

Seed::~Seed() {
    detail::SeedBody::let_go(std::move(body_));
}

std::vector<std::string> Seed::addresses() const {
    return body_->addresses();
}

std::string Seed::create_token(const TokenOptions& options) {
    return body_->create_token(options).value();
}

std::string Seed::status() const {
    return body_->status();
}

bool Seed::formed() const {
    return body_->formed();
}

bool Seed::give_up_on(int rank, const std::string& how) {
    if (rank < 0) throw Error(Errc::invalid_argument, "a rank cannot be negative");
    return body_->give_up_on(Rank(static_cast<std::uint32_t>(rank)), how);
}

std::optional<Error> Seed::aborted() const {
    return body_->aborted();
}

void Seed::close() {
    body_->close();
}

}  // namespace nexar
