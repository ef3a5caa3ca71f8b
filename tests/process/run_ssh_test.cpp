// `nexar run --host` with the real ssh and sshd, each host in its own network namespace.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "process/run_ssh_fixture.hpp"

namespace nexar {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

TEST_F(RunSsh, ranks_on_three_hosts_form_a_world) {
    auto program = launch({"--host", "localhost:1,a:2,b:2"}, "exec " NEXAR_JOINING_RANK);
    EXPECT_EQ(program->wait(), 0) << program->errors();
    for (int rank = 0; rank < 5; ++rank) {
        EXPECT_THAT(program->output(),
                    HasSubstr("[" + std::to_string(rank) + "] rank " + std::to_string(rank) +
                              " of 5 got " + std::to_string(1000 + (rank + 4) % 5) + "\n"));
    }
}

TEST_F(RunSsh, remote_rank_that_exits_before_it_joins_ends_the_formation) {
    auto program = launch({"--host", "a:1,b:2", "--nexar-formation-timeout=1h"},
                          "[ $NEXAR_RANK = 2 ] && exit 0; exec " NEXAR_JOINING_RANK);
    EXPECT_EQ(program->wait(), 1);
    EXPECT_THAT(program->errors(),
                AllOf(HasSubstr("the cluster cannot form: rank 2 exited with code 0 before it had "
                                "joined"),
                      testing::ContainsRegex("nexar run: rank 2 (had exited with code 0 before "
                                             "that|exited with code 0 while ranks? )")));
}

TEST_F(RunSsh, cut_cable_is_noticed_at_both_ends) {
    lose_host("2s", seconds(2) + seconds(10));  // the machine may be busy
}

TEST_F(RunSsh, host_that_lost_its_launcher_ends_its_ranks) {
    lose_launcher("2s", seconds(2) + seconds(10));
}

TEST_F(RunSsh, filtered_port_is_reported_as_a_failed_connection) {
    meet_a_filtered_port("1s", seconds(1) + seconds(10));
}

TEST_F(RunSsh, refused_connection_and_missing_nexar_are_reported_differently) {
    auto refused = launch({"-n", "1", "--host", "refused"}, "echo never");
    EXPECT_EQ(refused->wait(), 255);
    EXPECT_THAT(refused->errors(),
                AllOf(HasSubstr("Connection refused"),
                      HasSubstr("ssh could not connect or log in to host refused (rank 0)")));
    auto missing =
        launch({"-n", "1", "--host", "b", "--remote-nexar", "/nowhere/nexar"}, "echo never");
    EXPECT_EQ(missing->wait(), 127);
    EXPECT_THAT(missing->errors(), HasSubstr("host b (rank 0) cannot run the command "
                                             "`/nowhere/nexar`: install nexar there, or give its "
                                             "path with --remote-nexar"));
}

}  // namespace
}  // namespace nexar
