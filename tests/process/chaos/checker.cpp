#include "process/chaos/checker.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "process/chaos/growth.hpp"

namespace chaos_checker {

namespace {

constexpr std::size_t kMostFindings = 50;

using Step = std::pair<std::int64_t, std::int64_t>;  // world and number

struct Sent {
    Step step{};
    int to = -1;
    bool completed = false;
};

struct Got {
    Step step{};
    std::int64_t own_world = 0;
    int by = -1;
};

/// What one process did.
struct Process {
    int rank = -1;
    std::set<std::int64_t> worlds{};
    std::set<std::int64_t> failed_in{};
    std::map<std::int64_t, std::int64_t> last_step{};  // of each world, completed all-reduces
    std::map<std::int64_t, Held> held{};               // by world
    bool evicted = false;
};

class Check {
public:
    explicit Check(const Rules& rules) : rules_(rules) {}

    void read(const std::string& log) {
        Process process;
        // A killed process may leave a part of a line.
        std::istringstream lines(log.substr(0, log.rfind('\n') + 1));
        for (std::string line; std::getline(lines, line);) read_line(line, process);
        processes_[process.rank] = std::move(process);
    }

    Findings finish() {
        check_sums();
        check_messages();
        check_calls();
        check_memory();
        count_removed();
        found_.worlds = static_cast<std::int64_t>(worlds_.size());
        return std::move(found_);
    }

private:
    void wrong(const std::string& what) {
        if (found_.wrong.size() < kMostFindings) found_.wrong.push_back(what);
    }

    void read_line(const std::string& line, Process& process) {
        std::istringstream in(line);
        std::string event;
        in >> event;
        const bool understood = read_event(event, in, line, process);
        if (!understood) wrong("process " + std::to_string(process.rank) + " logged: " + line);
    }

    bool read_event(const std::string& event, std::istringstream& in, const std::string& line,
                    Process& process) {
        if (event == "world") return read_world(in, process);
        if (event == "view") return read_view(in, process);
        if (event == "reduce") return read_reduce(in, process);
        if (event == "reduced") return read_reduced(in, process);
        if (event == "send" || event == "sent" || event == "got") {
            return read_message(event, in, process);
        }
        if (event == "call" || event == "ran" || event == "called" || event == "uncalled") {
            return read_call(event, in, process);
        }
        return read_other(event, in, line, process);
    }

    static std::vector<int> read_ranks(const std::string& list) {
        std::vector<int> members;
        std::istringstream ranks(list);
        for (std::string one; std::getline(ranks, one, ',');) members.push_back(std::stoi(one));
        return members;
    }

    bool read_view(std::istringstream& in, const Process& process) {
        std::int64_t epoch = 0;
        std::string list;
        if (!(in >> epoch >> list)) return false;
        const auto members = read_ranks(list);
        const auto [known, fresh] = views_.try_emplace(epoch, members);
        if (!fresh && known->second != members) {
            wrong("epoch " + std::to_string(epoch) + " has two lists of members, rank " +
                  std::to_string(process.rank) + " has " + list);
        }
        return true;
    }

    bool read_world(std::istringstream& in, Process& process) {
        std::int64_t number = 0;
        std::int64_t parent = 0;
        std::string list;
        if (!(in >> number >> parent >> list)) return false;
        const auto members = read_ranks(list);
        const auto [known, fresh] = worlds_.try_emplace(number, members);
        if (!fresh && known->second != members) {
            wrong("world " + std::to_string(number) + " has two lists of members, rank " +
                  std::to_string(process.rank) + " has " + list);
        }
        if (std::ranges::find(members, process.rank) == members.end()) {
            wrong("rank " + std::to_string(process.rank) + " is not in its world " + list);
        }
        if (!process.worlds.empty() && *process.worlds.rbegin() >= number) {
            wrong("rank " + std::to_string(process.rank) + " went back to world " +
                  std::to_string(number));
        }
        if (process.evicted) wrong("an evicted process entered a world: " + list);
        process.worlds.insert(number);
        return true;
    }

    bool read_reduce(std::istringstream& in, Process& process) {
        Step step;
        std::int64_t value = 0;
        if (!(in >> step.first >> step.second >> value)) return false;
        if (!contributions_[step].emplace(process.rank, value).second) {
            wrong("rank " + std::to_string(process.rank) + " contributed twice to an all-reduce");
        }
        return true;
    }

    bool read_reduced(std::istringstream& in, Process& process) {
        Step step;
        std::int64_t value = 0;
        if (!(in >> step.first >> step.second >> value)) return false;
        sums_[step].emplace_back(process.rank, value);
        process.last_step[step.first] = step.second;
        if (process.evicted) wrong("an evicted process completed an all-reduce");
        return true;
    }

    bool read_message(const std::string& event, std::istringstream& in, const Process& process) {
        Step step;
        std::string id;
        if (!(in >> step.first >> step.second >> id)) return false;
        if (event == "sent") {
            sent_[id].completed = true;
            if (process.evicted) wrong("an evicted process completed a send");
            return true;
        }
        if (event == "send") {
            int to = -1;
            if (!(in >> to)) return false;
            if (!sent_.emplace(id, Sent{.step = step, .to = to}).second) {
                wrong("two messages have the id " + id);
            }
            return true;
        }
        std::int64_t own = 0;
        if (!(in >> own)) return false;
        if (!got_.emplace(id, Got{.step = step, .own_world = own, .by = process.rank}).second) {
            wrong("message " + id + " was received twice");
        }
        return true;
    }

    bool read_call(const std::string& event, std::istringstream& in, const Process& process) {
        std::string id;
        if (!(in >> id)) return false;
        if (event == "call") {
            int to = -1;
            if (!(in >> to)) return false;
            called_[id] = to;
        }
        if (event == "ran" && !ran_.emplace(id, process.rank).second) {
            wrong("call " + id + " ran twice");
        }
        if (event == "called") succeeded_.insert(id);
        return true;
    }

    bool read_other(const std::string& event, std::istringstream& in, const std::string& line,
                    Process& process) {
        if (event == "joined") return static_cast<bool>(in >> process.rank);
        if (event == "failed") {
            std::int64_t world = 0;
            std::string code;
            int names_epoch = 0;
            if (!(in >> world >> code >> names_epoch)) return false;
            ++found_.failures;
            std::string text;
            std::getline(in >> std::ws, text);
            if (found_.errors.size() < Findings::kMostErrors) found_.errors.insert(text);
            process.failed_in.insert(world);
            if (code == "membership_changed" && names_epoch == 0) {
                wrong("this error does not name the epoch: " + line);
            }
            return true;
        }
        if (event == "holds") {
            std::int64_t world = 0;
            if (!(in >> world)) return false;
            Held& held = process.held[world];
            return static_cast<bool>(in >> held.resident_kb >> held.heap >> held.mappings >>
                                     held.descriptors);
        }
        if (event == "longest") {
            std::string call;
            std::int64_t time = 0;
            if (!(in >> call >> time)) return false;
            std::int64_t& longest = found_.longest_us[call];
            longest = std::max(longest, time);
            return true;
        }
        if (event == "evicted") {
            process.evicted = true;
            ++found_.evicted;
            return true;
        }
        return event == "minority" || event == "end";
    }

    void count_removed() {
        std::set<int> living;
        for (const auto& [epoch, members] : views_) {
            const std::set<int> now(members.begin(), members.end());
            found_.removed +=
                std::ranges::count_if(living, [&](int member) { return !now.contains(member); });
            living = now;
        }
    }

    void check_sums() {
        for (const auto& [step, sums] : sums_) {
            const auto world = worlds_.find(step.first);
            if (world == worlds_.end()) {
                wrong("an all-reduce in the unknown world " + std::to_string(step.first));
                continue;
            }
            std::int64_t expected = 0;
            for (const int member : world->second) {
                const auto given = contributions_[step].find(member);
                if (given == contributions_[step].end()) {
                    wrong("an all-reduce of world " + std::to_string(step.first) +
                          " completed without rank " + std::to_string(member));
                } else {
                    expected += given->second;
                }
            }
            for (const auto& [rank, value] : sums) {
                ++found_.sums;
                if (value == expected) continue;
                wrong("rank " + std::to_string(rank) + " got the sum " + std::to_string(value) +
                      " instead of " + std::to_string(expected) + " in world " +
                      std::to_string(step.first) + ", step " + std::to_string(step.second));
            }
        }
    }

    void check_messages() {
        for (const auto& [id, got] : got_) {
            ++found_.messages;
            const auto sent = sent_.find(id);
            if (sent == sent_.end()) {
                wrong("message " + id + " was received, but never sent");
                continue;
            }
            if (sent->second.to != got.by) {
                wrong("message " + id + " for rank " + std::to_string(sent->second.to) +
                      " reached rank " + std::to_string(got.by));
            }
            if (sent->second.step != got.step || got.own_world != got.step.first) {
                wrong("message " + id + " of world " + std::to_string(sent->second.step.first) +
                      " was received in world " + std::to_string(got.own_world));
            }
        }
        for (const auto& [id, sent] : sent_) {
            if (sent.completed && !got_.contains(id)) check_lost(id, sent);
        }
    }

    /// A completed send whose message was not received: the receiver must have had an error in that
    /// world, or must have ended before it came so far.
    void check_lost(const std::string& id, const Sent& sent) {
        const auto receiver = processes_.find(sent.to);
        if (receiver == processes_.end()) return;
        const Process& process = receiver->second;
        if (process.failed_in.contains(sent.step.first)) return;
        const auto last = process.last_step.find(sent.step.first);
        const bool went_on = last != process.last_step.end() && last->second > sent.step.second;
        const bool later_world =
            process.worlds.upper_bound(sent.step.first) != process.worlds.end();
        if (went_on || later_world) {
            wrong("message " + id + " was sent, and rank " + std::to_string(sent.to) +
                  " continued without it and without an error");
        }
    }

    void check_calls() {
        for (const auto& [id, by] : ran_) {
            const auto called = called_.find(id);
            if (called == called_.end() || called->second != by) {
                wrong("call " + id + " ran at rank " + std::to_string(by) + " by mistake");
            }
        }
        for (const std::string& id : succeeded_) {
            ++found_.calls;
            if (!ran_.contains(id)) wrong("call " + id + " succeeded, but never ran");
        }
    }

    void check_memory() {
        Growth growth(rules_, found_);
        for (const auto& [rank, process] : processes_) growth.check(rank, process.held);
        for (const std::string& one : growth.wrong()) wrong(one);
    }

    Rules rules_;
    Findings found_{};
    std::map<int, Process> processes_{};
    std::map<std::int64_t, std::vector<int>> views_{};
    std::map<std::int64_t, std::vector<int>> worlds_{};
    std::map<Step, std::map<int, std::int64_t>> contributions_{};
    std::map<Step, std::vector<std::pair<int, std::int64_t>>> sums_{};
    std::map<std::string, Sent> sent_{};
    std::map<std::string, Got> got_{};
    std::map<std::string, int> called_{};
    std::map<std::string, int> ran_{};
    std::set<std::string> succeeded_{};
};

}  // namespace

Findings check(const std::vector<std::string>& logs, const Rules& rules) {
    Check check(rules);
    for (const std::string& log : logs) check.read(log);
    return check.finish();
}

Findings check_files(const std::vector<std::string>& paths, const Rules& rules) {
    Check check(rules);
    for (const std::string& path : paths) {
        std::ifstream file(path, std::ios::binary);
        check.read({std::istreambuf_iterator<char>(file), {}});
    }
    return check.finish();
}

std::string describe(const Findings& findings) {
    std::ostringstream out;
    out << findings.worlds << " worlds, " << findings.sums << " sums, " << findings.messages
        << " messages, " << findings.calls << " calls, " << findings.failures << " errors, "
        << findings.removed << " removed from views, " << findings.evicted
        << " noticed that they were evicted, memory grew by " << findings.most_growth_kb
        << " KiB at most, in " << findings.worlds_of_growth << " worlds, the heap by "
        << findings.heap_per_world << " bytes per world, mappings by " << findings.mappings_gained
        << ", descriptors by " << findings.descriptors_gained;
    const char* before = ", longest calls: ";
    for (const auto& [call, time] : findings.longest_us) {
        out << std::exchange(before, ", ") << call << " " << time << " us";
    }
    out << "; " << findings.wrong.size() << " findings";
    for (const std::string& one : findings.wrong) out << "\n  " << one;
    for (const std::string& one : findings.errors) out << "\n  an error: " << one;
    return out.str();
}

}  // namespace chaos_checker
