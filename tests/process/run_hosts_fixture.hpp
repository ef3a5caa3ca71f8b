#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "process/run_fixture.hpp"
#include "support/temp_directory.hpp"

namespace nexar {

/// `nexar run --host` with an ssh that runs the command on this machine.
class RunHosts : public RunFixture {
protected:
    RunHosts() {
        // Like sshd: another shell runs the words after the host, in another directory and with few
        // variables.
        write_script("ssh",
                     "[ \"$1\" = -G ] && { cat " + (folder_ / "config").string() +
                         " 2>/dev/null; exit; }\n"
                         "echo \"$@\" >> " +
                         (folder_ / "arguments").string() +
                         "\n"
                         "while [ \"$1\" != -- ]; do shift; done\n"
                         "[ \"$2\" = unreachable ] && { echo 'ssh: no route' >&2; exit 255; }\n"
                         "cd /; exec env -i PATH=\"$PATH\" HOST_NAME=\"$2\" " +
                         mark() + " /bin/sh -c \"$3\"\n");
        path_ = folder_.path() + ":" + std::filesystem::path(NEXAR_COMMAND).parent_path().string() +
                ":" + path_;
    }

    void write_script(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << "#!/bin/sh\n" << text;
        std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    }

    TempDirectory folder_;
};

}  // namespace nexar
