#pragma once

#include <memory>
#include <nexar/seed.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_pool.hpp"
#include "runtime/node_body.hpp"
#include "runtime/progress.hpp"
#include "runtime/seed/seed_server.hpp"

namespace nexar::detail {

/// A seed server with its socket, its lock, and the loop that drives it. Any thread may call.
class SeedBody final : public runtime::Driven {
public:
    static Result<std::shared_ptr<SeedBody>> open(const SeedOptions& options,
                                                  runtime::HostServices services);
    ~SeedBody() override;

    std::vector<std::string> addresses() const { return server_->addresses(); }
    Result<std::string> create_token(const TokenOptions& options);
    std::string status();
    bool formed();
    bool give_up_on(Rank rank, const std::string& how);
    std::optional<Error> aborted();
    void close();

    /// As NodeBody::let_go().
    static void let_go(std::shared_ptr<SeedBody> body);

    std::span<port::Carrier* const> carriers() const noexcept override { return carriers_; }
    bool turn(TimePoint now) noexcept override;
    std::optional<TimePoint> next_deadline() const noexcept override {
        return server_->next_deadline();
    }

private:
    SeedBody() = default;

    void look_whether_idle();

    SteadyClock clock_;
    std::shared_ptr<runtime::Loop> loop_;
    BufferPool pool_{PoolProfile::training()};
    std::unique_ptr<port::Carrier> carrier_;
    std::vector<port::Carrier*> carriers_;
    std::unique_ptr<runtime::SeedServer> server_;
    bool closing_ = false;
    bool idle_told_ = false;
    runtime::Completion idle_;
};

}  // namespace nexar::detail
