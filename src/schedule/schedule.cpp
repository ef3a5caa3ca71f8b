#include "schedule/schedule.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

namespace nexar::schedule {

namespace {

std::string folded(const Step& step, std::string_view incoming) {
    const std::string local = to_text(step.local);
    return step.side == compute::Side::left ? fmt::format("{} op {}", incoming, local)
                                            : fmt::format("{} op {}", local, incoming);
}

}  // namespace

std::string to_text(const Slice& slice) {
    constexpr std::array<std::string_view, 3> kNames{"input", "output", "scratch"};
    return fmt::format("{}[{}+{}]", kNames.at(static_cast<std::size_t>(slice.space)), slice.offset,
                       slice.count);
}

std::string to_text(const Step& step) {
    const std::string into = to_text(step.into);
    switch (step.kind) {
        case Kind::send:
            return fmt::format("send {} to {} #{}", to_text(step.from), step.peer, step.message);
        case Kind::receive_copy:
            return fmt::format("{} = receive from {} #{}", into, step.peer, step.message);
        case Kind::receive_reduce:
            return fmt::format("{} = {} from {} #{}", into, folded(step, "receive"), step.peer,
                               step.message);
        case Kind::copy:
            return fmt::format("{} = {}", into, to_text(step.from));
        case Kind::reduce:
            return fmt::format("{} = {}", into, folded(step, to_text(step.from)));
    }
    return "unknown step";
}

std::string to_text(const Schedule& schedule) {
    fmt::memory_buffer out;
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
        const Step& step = schedule.steps[i];
        fmt::format_to(std::back_inserter(out), "{:>4}  {}", i, to_text(step));
        if (step.segment != 0)
            fmt::format_to(std::back_inserter(out), " in segments of {}", step.segment);
        std::string_view before = " after ";
        for (const Dependency& d : schedule.dependencies_of(i)) {
            fmt::format_to(std::back_inserter(out), "{}{}{}{}", before, d.step,
                           d.event == Milestone::released ? "r" : "", d.pipelined ? "~" : "");
            before = ", ";
        }
        out.push_back('\n');
    }
    fmt::format_to(std::back_inserter(out), "scratch {}\n", schedule.scratch);
    return fmt::to_string(out);
}

}  // namespace nexar::schedule
