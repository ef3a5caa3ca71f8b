#include "run/launcher_line.hpp"

#include <csignal>
#include <utility>
#include <variant>

namespace nexar::run {

std::vector<ToPart> LauncherLine::take(TimePoint now, std::string_view bytes) {
    std::vector<ToPart> orders;
    if (bytes.empty() || pending_.size() > kMostPending) {
        open_ = false;
        return orders;
    }
    heard_ = now;
    pending_ += bytes;
    for (std::size_t end = pending_.find('\n'); end != std::string::npos;
         end = pending_.find('\n')) {
        auto message = decode_to_part(std::string_view(pending_).substr(0, end));
        pending_.erase(0, end + 1);
        if (!message) continue;
        const auto* pass_on = std::get_if<PassOn>(&*message);
        stopped_ = pass_on != nullptr && pass_on->signal == SIGTSTP;
        if (!std::holds_alternative<Alive>(*message)) orders.push_back(std::move(*message));
    }
    return orders;
}

bool LauncherLine::lost(TimePoint now) const noexcept {
    const auto until = deadline();
    return !open_ || (until && now >= *until);
}

std::optional<TimePoint> LauncherLine::deadline() const noexcept {
    if (!open_ || stopped_) return std::nullopt;
    return heard_ + timeout_;
}

}  // namespace nexar::run
