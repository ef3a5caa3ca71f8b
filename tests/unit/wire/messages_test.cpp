#include "wire/messages.hpp"

#include <gtest/gtest.h>

#include <string>

#include "samples.hpp"

namespace nexar::wire {
namespace {

TEST(ReportOf, contains_the_context_of_the_error) {
    const Error error(Errc::limit_exceeded, "too much", {.rank = 3, .sequence = Sequence(9)});
    const ErrorReport report = report_of(error, Epoch(5));
    EXPECT_EQ(report, (ErrorReport{.code = Errc::limit_exceeded,
                                   .epoch = Epoch(5),
                                   .text = "too much",
                                   .rank = Rank(3),
                                   .sequence = Sequence(9)}));
}

TEST(ReportOf, always_encodes) {
    const std::string cause = "bad file:\n\x1b[31m" + std::string(5000, 'x');
    const ErrorReport report = report_of(Error(Errc::bad_config, cause), Epoch(1));
    EXPECT_EQ(report.text.size(), kMaxReportTextBytes);
    EXPECT_EQ(report.text.substr(0, 20), "bad file:\\n\\x1b[31mx");
    EXPECT_TRUE(report.text.ends_with("x..."));
    EXPECT_FALSE(testing::encoded(report).empty());
}

}  // namespace
}  // namespace nexar::wire
