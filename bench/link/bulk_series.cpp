#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "groups.hpp"

namespace nexar::bench {

namespace {

std::vector<double> each(const std::vector<BulkTrial>& trials, double BulkTrial::* figure_of) {
    std::vector<double> figures(trials.size());
    std::ranges::transform(trials, figures.begin(), figure_of);
    return figures;
}

std::string per_call(std::uint64_t datagrams, std::uint64_t calls) {
    if (calls == 0) return "-";
    return fmt::format("{:.1f}", static_cast<double>(datagrams) / static_cast<double>(calls));
}

/// Where datagrams were lost, summed over all repetitions.
std::string losses(const std::vector<BulkTrial>& trials) {
    std::uint64_t on_purpose = 0;
    std::uint64_t in_kernel = 0;
    std::uint64_t in_send = 0;
    std::uint64_t gso_refused = 0;
    for (const BulkTrial& trial : trials) {
        for (const SideNotes& notes : {trial.client, trial.server}) {
            on_purpose += notes.lost_on_purpose;
            in_kernel += notes.lost_in_kernel;
            in_send += notes.lost_in_send;
            gso_refused += notes.gso_refused;
        }
    }
    std::string text;
    if (on_purpose != 0) text += fmt::format(" {} on purpose", on_purpose);
    if (in_kernel != 0) text += fmt::format(" {} by full buffers", in_kernel);
    if (in_send != 0) text += fmt::format(" {} in send", in_send);
    if (gso_refused != 0) text += fmt::format(" ({} GSO refused)", gso_refused);
    return text.empty() ? " -" : text;
}

}  // namespace

std::string text_of(const Spread& spread) {
    return fmt::format("{:.3g} ({:.3g}..{:.3g})", spread.median, spread.least, spread.most);
}

void figure(Report& report, std::string_view name, const std::vector<double>& samples,
            std::string_view unit, std::string_view bar) {
    const Spread spread = spread_of(samples);
    fmt::print("{:<30} {:<26} {:<8} {}\n", name, text_of(spread), unit, bar);
    std::fflush(stdout);
    report.keep(name, spread.median, unit);
}

std::vector<double> BulkSeries::rates() const {
    return each(trials, &BulkTrial::gb_per_s);
}

std::vector<BulkSeries> measure_bulk(Trials& trials, const std::vector<NamedContender>& contenders,
                                     const GroupOptions& options,
                                     const std::function<void()>& between) {
    std::vector<BulkSeries> series(contenders.size());
    std::vector<std::size_t> messages(contenders.size());
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        series[i].name = contenders[i].name;
        messages[i] = trials.messages_for(contenders[i].how, options.seconds);
    }
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            Contender how = contenders[i].how;
            how.loss_seed += static_cast<std::uint64_t>(repetition);
            series[i].trials.push_back(trials.bulk(how, messages[i]));
        }
        if (between) between();
    }
    return series;
}

void print_bulk(Report& report, const std::vector<BulkSeries>& series) {
    fmt::print("{:<20} {:<22} {:>18} {:>9} {:>17}  {}\n", "", "GB/s (least..most)",
               "CPU s/GB out / in", "datagram", "per call out / in", "lost");
    for (const BulkSeries& one : series) {
        const Spread rate = spread_of(one.rates());
        const double client = spread_of(each(one.trials, &BulkTrial::client_cpu_per_gb)).median;
        const double server = spread_of(each(one.trials, &BulkTrial::server_cpu_per_gb)).median;
        const BulkTrial& last = one.trials.back();
        fmt::print(
            "{:<20} {:<22} {:>18} {:>9} {:>17} {}\n", one.name, text_of(rate),
            fmt::format("{:.3f} / {:.3f}", client, server),
            last.client.datagram_bytes == 0 ? "-" : std::to_string(last.client.datagram_bytes),
            per_call(last.client.datagrams_out, last.client.calls_out) + " / " +
                per_call(last.server.datagrams_in, last.server.calls_in),
            losses(one.trials));
        report.keep(one.name + "_gb_per_s", rate.median, "GB/s");
        report.keep(one.name + "_client_cpu_s_per_gb", client, "s/GB");
        report.keep(one.name + "_server_cpu_s_per_gb", server, "s/GB");
    }
    std::fflush(stdout);
}

}  // namespace nexar::bench
