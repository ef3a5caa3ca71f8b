#include "run/supervisor.hpp"

#include <unistd.h>

#include <utility>

#include "base/try.hpp"
#include "run/caught_signals.hpp"
#include "run/keeper.hpp"
#include "run/supervisor_loop.hpp"
#include "run/unit_streams.hpp"

namespace nexar::run {

Result<int> supervise(const SupervisorOptions& options, Meeting& meeting) {
    fill_standard_descriptors();
    NEXAR_TRY_VALUE(signals, CaughtSignals::make());
    const bool pumps = !options.is_part && ::isatty(STDIN_FILENO) != 0;
    KeeperPlan plan{.signal_mask = signals.mask_before(),
                    .kills_groups = options.failure.mode != OnFailure::end};
    std::vector<UnitStreams> streams;
    for (const Unit& unit : options.units) {
        NEXAR_TRY_VALUE(planned, plan_unit(unit, pumps));
        plan.units.push_back(std::move(planned.plan));
        for (const int descriptor :
             {planned.streams.output.descriptor(), planned.streams.errors.descriptor(),
              planned.streams.input.descriptor()}) {
            if (descriptor >= 0) plan.descriptors.push_back(descriptor);
        }
        streams.push_back(std::move(planned.streams));
    }
    NEXAR_TRY_VALUE(keeper, Keeper::start(plan));
    NEXAR_TRY_VALUE(join, meeting.open());
    NEXAR_TRY(keeper.start_units(join));
    return SupervisorLoop(options, meeting, signals, keeper, streams).run(join);
}

}  // namespace nexar::run
