#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "run/ended.hpp"
#include "run/policy.hpp"

namespace nexar::run {

/// One process to start.
struct UnitPlan {
    std::vector<std::string> command;
    std::vector<std::string> environment;  // "NAME=value"
    bool is_rank = true;  // gets NEXAR_JOIN, and signals; else it is told otherwise
    int input = -1;       // descriptors for 0, 1 and 2
    int output = -1;
    int errors = -1;
};

struct KeeperPlan {
    std::vector<UnitPlan> units{};
    sigset_t signal_mask{};          // that the units get
    std::vector<int> descriptors{};  // of the launcher, which the keeper must not hold open
};

/// What the keeper tells.
struct Report {
    enum class Kind : std::uint32_t {
        not_started,  // value: errno
        ended,        // value: as of waitpid()
        alone,        // no process is left
    };

    Kind kind = Kind::alone;
    std::uint32_t unit = 0;
    std::int32_t value = 0;
};

/// The keeper: a process between the launcher and what it starts, whose only duty is that nothing
/// is left behind. It is a child subreaper in a process group of its own. When the launcher is
/// gone, by SIGKILL too, the line between them breaks, and the keeper kills every descendant until
/// there is none. When the keeper is killed, its children get SIGKILL by the kernel, and all other
/// descendants fall to the launcher, which is a subreaper as well.
///
/// This is the launcher's end. To be made while the process has one thread. Destroying it makes the
/// keeper kill what is left and end.
class Keeper {
public:
    static Result<Keeper> start(const KeeperPlan& plan);

    Keeper(Keeper&&) noexcept = default;
    Keeper& operator=(Keeper&&) = delete;
    ~Keeper();

    /// Readable when there is a report, or the keeper is gone.
    int descriptor() const noexcept { return line_.number(); }

    /// Starts the units. The join string is put into their environment and appears nowhere else.
    Result<void> start_units(std::string_view join) const;
    void give(const Order& order) const noexcept;

    /// The next report, if there is one.
    std::optional<Report> take_report() noexcept;
    /// Whether the line to it broke.
    bool gone() const noexcept { return gone_; }

private:
    Keeper(Descriptor line, pid_t process) noexcept : line_(std::move(line)), process_(process) {}

    Descriptor line_;
    pid_t process_;
    bool gone_ = false;
};

}  // namespace nexar::run
