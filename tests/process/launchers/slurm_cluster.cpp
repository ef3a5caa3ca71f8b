#include "process/launchers/slurm_cluster.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "process/program.hpp"

namespace nexar::testing {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{30};
constexpr std::array kPrograms = {"munged", "slurmctld", "slurmd", "srun",
                                  "sbatch", "sinfo",     "squeue"};

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0)
        throw std::runtime_error("gethostname failed");
    const std::string text = name.data();
    return text.substr(0, text.find('.'));
}

/// TCP ports that are free now.
std::vector<int> free_ports(std::size_t count) {
    std::vector<int> sockets;
    std::vector<int> ports;
    while (ports.size() < count) {
        sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const native = reinterpret_cast<sockaddr*>(&address);
        if (::bind(sockets.back(), native, size) != 0 ||
            ::getsockname(sockets.back(), native, &size) != 0) {
            throw std::runtime_error("cannot find a free TCP port");
        }
        ports.push_back(ntohs(address.sin_port));
    }
    for (const int socket : sockets) ::close(socket);
    return ports;
}

std::string user_name() {
    const passwd* const user = ::getpwuid(::geteuid());
    return user == nullptr ? "root" : user->pw_name;
}

void write_munge_key(const std::string& path) {
    std::random_device random;
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 128; ++i) file.put(static_cast<char>(random()));
    file.close();
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace

std::string installed(const std::string& program) {
    for (const char* directory : {"/usr/bin/", "/usr/sbin/"}) {
        if (::access((directory + program).c_str(), X_OK) == 0) return directory + program;
    }
    return "";
}

std::string SlurmCluster::why_not() {
    for (const char* program : kPrograms) {
        if (installed(program).empty()) {
            return fmt::format("{} is not installed; run scripts/setup.sh launchers", program);
        }
    }
    return "";
}

SlurmCluster::SlurmCluster() {
    for (const char* name : {"munge", "state", "spool", "spool/nexar-n1", "spool/nexar-n2"}) {
        fs::create_directory(directory_ / name);
    }
    fs::permissions(directory_ / "munge", fs::perms::owner_all);
    write_munge_key(file("munge/key"));
    write_config();
    start("munged",
          {"--foreground", "--force", "--num-threads=1", "--key-file=" + file("munge/key"),
           "--socket=" + file("munge/socket"), "--pid-file=" + file("munge/pid"),
           "--log-file=" + file("munge/log"), "--seed-file=" + file("munge/seed")});
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const auto check_time = [&](const char* what) {
        if (std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error(fmt::format("{}: {}", what, errors()));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    while (!fs::exists(file("munge/socket"))) check_time("munged did not start in time");
    start("slurmctld", {"-D"});
    start("slurmd", {"-D", "-N", "nexar-n1"});
    start("slurmd", {"-D", "-N", "nexar-n2"});
    while (run_program(installed("sinfo"), {"-h", "-o", "%t %D"}, environment()).output !=
           "idle 2\n") {
        check_time("Slurm did not start in time");
    }
}

SlurmCluster::~SlurmCluster() {
    // Kill the daemons: their state is not needed again, and a clean shutdown takes seconds.
    while (!daemons_.empty()) daemons_.pop_back();
    // The processes that slurmd started for job steps outlive it.
    for (const pid_t left : processes_with("SLURM_CONF=" + file("slurm.conf"))) {
        ::kill(left, SIGKILL);
    }
}

std::vector<std::string> SlurmCluster::environment() const {
    return {"SLURM_CONF=" + file("slurm.conf"), "PATH=/usr/bin:/bin", "HOME=" + directory_.path()};
}

void SlurmCluster::start(const std::string& program, std::vector<std::string> arguments) {
    daemons_.push_back(
        std::make_unique<RunningProgram>(installed(program), std::move(arguments), environment()));
}

std::string SlurmCluster::errors() const {
    std::string all;
    for (const auto& daemon : daemons_) {
        daemon->writes("", 0);
        all += daemon->errors();
    }
    return all;
}

void SlurmCluster::write_config() const {
    const auto ports = free_ports(3);
    const std::string host = host_name();
    std::ofstream config(file("slurm.conf"));
    config << "ClusterName=nexar\n"
           << fmt::format("SlurmctldHost={}(127.0.0.1)\n", host)
           << fmt::format("SlurmctldPort={}\n", ports[0])
           << fmt::format("SlurmUser={0}\nSlurmdUser={0}\n", user_name()) << "AuthType=auth/munge\n"
           << fmt::format("AuthInfo=socket={}\n", file("munge/socket"))
           << fmt::format("StateSaveLocation={}\n", file("state"))
           << fmt::format("SlurmdSpoolDir={}\n", file("spool/%n"))
           << fmt::format("SlurmctldPidFile={}\n", file("slurmctld.pid"))
           << fmt::format("SlurmdPidFile={}\n", file("%n.pid")) << "MailProg=/bin/true\n"
           << "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\n"
           << "JobAcctGatherType=jobacct_gather/none\nMpiDefault=none\nReturnToService=2\n"
           << "SchedulerType=sched/builtin\n"
           << "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval="
              "1\nSelectType=select/cons_tres\n"
           << "SelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\n";
    for (int i = 1; i <= 2; ++i) {
        config << fmt::format(
            "NodeName=nexar-n{} NodeHostname={} NodeAddr=127.0.0.1 Port={} CPUs=4\n", i, host,
            ports[static_cast<std::size_t>(i)]);
    }
    config << "PartitionName=all Nodes=ALL Default=YES State=UP\n";
}

}  // namespace nexar::testing
