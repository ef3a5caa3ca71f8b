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
    std::vector<std::string> environment;   // "NAME=value"
    std::vector<std::size_t> processors{};  // that it is bound to; empty: all
    bool is_rank = true;    // gets NEXAR_JOIN and signals; a part gets them as messages
    bool restarts = false;  // may be restarted, with the same output and errors
    int input = -1;         // descriptors for 0, 1 and 2
    int output = -1;
    int errors = -1;
};

struct KeeperPlan {
    std::vector<UnitPlan> units{};
    sigset_t signal_mask{};  // for the units
    /// When a rank fails, kills its process group: the run may go on without it for a long time.
    bool kills_groups = false;
    std::vector<int> descriptors{};  // the launcher's, which the keeper must not hold open
};

struct Command;

/// A message from the keeper.
struct Report {
    enum class Kind : std::uint32_t {
        not_started,  // value: errno
        ended,        // value: the waitpid() status
        alone,        // no process is left
    };

    Kind kind = Kind::alone;
    std::uint32_t unit = 0;
    std::int32_t value = 0;
};

/// The keeper is a process between the launcher and the processes it starts. Its only duty is to
/// leave no process behind. It is a child subreaper in its own process group. When the launcher
/// dies, even by SIGKILL, the line between them breaks, and the keeper kills every descendant. When
/// the keeper is killed, the kernel sends its children SIGKILL, and all other descendants fall to
/// the launcher, which is a subreaper as well.
///
/// This class is the launcher's end. Create it while the process has one thread. Its destructor
/// makes the keeper kill the remaining processes and end.
class Keeper {
public:
    static Result<Keeper> start(const KeeperPlan& plan);

    Keeper(Keeper&&) noexcept = default;
    Keeper& operator=(Keeper&&) = delete;
    ~Keeper();

    /// Readable when a report is pending or the keeper is gone.
    int descriptor() const noexcept { return line_.number(); }

    /// Starts the units. The join string goes into their environment and appears nowhere else.
    Result<void> start_units(std::string_view join) const;
    /// Starts a rank that has ended again, for the `number`th time: without NEXAR_RANK, with
    /// NEXAR_RESTARTED and without input.
    void restart_unit(std::size_t unit, std::uint32_t number, std::string_view join) const;
    void give(const Order& order) const noexcept;

    /// The next pending report, if any.
    std::optional<Report> take_report() noexcept;
    /// True once the line to the keeper has broken.
    bool gone() const noexcept { return gone_; }

private:
    bool send_with_join(const Command& command, std::string_view join) const;

    Keeper(Descriptor line, pid_t process) noexcept : line_(std::move(line)), process_(process) {}

    Descriptor line_;
    pid_t process_;
    bool gone_ = false;
};

}  // namespace nexar::run
