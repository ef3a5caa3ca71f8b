// A short version of soak_test.cpp.

#include <gtest/gtest.h>

#include "process/p2p/flood_scenario.hpp"
#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

class UnwantedMessages : public ::testing::TestWithParam<std::string> {};

TEST_P(UnwantedMessages, messages_of_8_bytes_take_bounded_memory_and_block_no_others) {
    withstands_unwanted_messages(
        {.message_bytes = 8, .messages = 100'000, .within = kWithin, .link = GetParam()});
}

TEST_P(UnwantedMessages, messages_of_64_kib_take_bounded_memory_and_block_no_others) {
    withstands_unwanted_messages({.message_bytes = std::size_t{64} << 10U,
                                  .messages = scaled(1'600),
                                  .within = kWithin,
                                  .link = GetParam()});
}

TEST_P(UnwantedMessages, messages_of_16_mib_take_bounded_memory_and_block_no_others) {
    withstands_unwanted_messages({.message_bytes = std::size_t{16} << 20U,
                                  .messages = 6,
                                  .within = kWithin,
                                  .link = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Over, UnwantedMessages, ::testing::Values("quic", "shm"),
                         [](const auto& link) { return link.param; });

}  // namespace
}  // namespace nexar::testing
