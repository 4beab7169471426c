// SPDX-License-Identifier: Apache-2.0
#include "cli/explained/explained_lines.h"

#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>
#include <utility>

namespace rollcall {
namespace {

std::vector<ExplainedLine> Explain(const std::string& log) {
  std::istringstream stream(log);
  return ExplainLines(stream).lines;
}

// Gives its text, and then one letter for ever.
class EndlessText : public std::streambuf {
 public:
  explicit EndlessText(std::string text) : text_(std::move(text)) {
    setg(text_.data(), text_.data(), text_.data() + text_.size());
  }

 private:
  int_type underflow() override {
    setg(more_.data(), more_.data(), more_.data() + more_.size());
    return traits_type::to_int_type(more_[0]);
  }

  std::string text_;
  std::string more_ = std::string(1 << 16, 'x');
};

constexpr char kWatchdog[] = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)";

TEST(ExplainedLinesTest, GivesEachKindOfLineOnceWithItsFirstLineAndCount) {
  const auto found =
      Explain("step 1\nstep 2\n[rank3] " + std::string(kWatchdog) +
              "\nINFO: task python:7 blocked for more than 120 seconds.\n[rank2] " + kWatchdog);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_STREQ(found[0].explanation->id, "torch-watchdog-timeout");
  EXPECT_EQ(found[0].line, 3u);
  EXPECT_EQ(found[0].count, 2u);
  EXPECT_EQ(found[0].text, "[rank3] " + std::string(kWatchdog));
  EXPECT_STREQ(found[1].explanation->id, "kernel-hung-task");
}

TEST(ExplainedLinesTest, FindsTheLineAfterOneOfManyMegabytes) {
  const auto found = Explain(std::string(3 << 20, 'x') + "\n" + kWatchdog + "\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 2u);
}

TEST(ExplainedLinesTest, ALineThatNeverEndsEndsTheReading) {
  EndlessText text("step 1\n[rank3] " + std::string(kWatchdog) + "\n" + kWatchdog);
  std::istream log(&text);
  const ExplainedLog found = ExplainLines(log, /*longest_line=*/1 << 20);
  EXPECT_EQ(found.endless_line, 3u);
  ASSERT_EQ(found.lines.size(), 1u);
  EXPECT_EQ(found.lines[0].count, 2u) << "the beginning of the line counts";
}

TEST(ExplainedLinesTest, ALongLineThatEndsEndsNothing) {
  std::istringstream log(std::string(1 << 20, 'x') + "\n" + kWatchdog);
  const ExplainedLog found = ExplainLines(log, /*longest_line=*/1 << 20);
  EXPECT_EQ(found.endless_line, 0u);
  EXPECT_EQ(found.lines.size(), 1u);
}

TEST(ExplainedLinesTest, ShowsNoControlSequencesAndNoWholeScreen) {
  const auto found = Explain("\x1b[31m" + std::string(kWatchdog) + std::string(5000, 'y'));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text.find('\x1b'), std::string::npos);
  EXPECT_LE(found[0].text.size(), kLongestShownLine);
}

TEST(ExplainedLinesTest, AnEmptyLogAndOneWithoutKnownLinesGiveNothing) {
  EXPECT_TRUE(Explain("").empty());
  EXPECT_TRUE(Explain("\n\nepoch 1: loss 0.07\n").empty());
}

}  // namespace
}  // namespace rollcall
