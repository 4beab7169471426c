// SPDX-License-Identifier: Apache-2.0
#include "base/log/limited_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <sstream>

namespace rollcall {
namespace {

class LimitedLogTest : public testing::Test {
 protected:
  LimitedLogTest()
      : log_("rollcalld", std::make_shared<LimitedSink>(
                              "rollcalld", std::make_shared<spdlog::sinks::ostream_sink_st>(out_),
                              [this] { return now_ns_; })) {
    log_.set_pattern("%n %l %v");
  }

  // The lines since the last call.
  std::string Written() {
    std::string written = out_.str();
    out_.str("");
    return written;
  }
  int64_t CountWritten() {
    const std::string written = Written();
    return std::count(written.begin(), written.end(), '\n');
  }
  // `count` lines over `ns`, evenly.
  void Warn(int64_t count, int64_t ns) {
    for (int64_t i = 0; i < count; ++i) {
      now_ns_ += ns / count;
      log_.warn("refused agent {}", i);
    }
  }

  int64_t now_ns_ = 3600 * kSecond;
  std::ostringstream out_;
  spdlog::logger log_;
};

TEST_F(LimitedLogTest, AMillionLinesBecomeABurstAndOneLine) {
  Warn(1'000'000, 0);
  EXPECT_EQ(CountWritten(), 100);
  log_.flush();
  EXPECT_EQ(Written(),
            "rollcalld warning left out 999900 lines of this log: more than 10 a second came\n");
  log_.flush();
  EXPECT_EQ(Written(), "") << "a line is told of once";
}

TEST_F(LimitedLogTest, AFloodOfAMinuteWritesTenLinesASecond) {
  Warn(1'000'000, 60 * kSecond);
  const int64_t written = CountWritten();
  EXPECT_GE(written, 100 + 600);
  EXPECT_LE(written, 100 + 600 + 6) << "and six lines on what was left out";
}

TEST_F(LimitedLogTest, AFloodOfWarningsHidesNoError) {
  Warn(1'000'000, 0);
  Written();
  log_.error("cannot write the history");
  EXPECT_EQ(Written(), "rollcalld error cannot write the history\n");
}

TEST_F(LimitedLogTest, AFloodHidesNoLineThatIsAlwaysLogged) {
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(log_));
  for (int i = 0; i < 1000; ++i) spdlog::info("serves agent {}", i);
  Written();
  for (int i = 0; i < 200; ++i) LogAlways("audit: somebody {} took stacks");
  const std::string written = Written();
  spdlog::set_default_logger(before);
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 200);
  EXPECT_EQ(written.substr(0, written.find('\n')), "rollcalld info audit: somebody {} took stacks");
}

TEST_F(LimitedLogTest, LinesThatAreAlwaysLoggedTakeNoRoomOfOthers) {
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(log_));
  for (int i = 0; i < 200; ++i) LogAlways("audit");
  Written();
  for (int i = 0; i < 200; ++i) spdlog::info("serves agent {}", i);
  spdlog::set_default_logger(before);
  EXPECT_EQ(CountWritten(), 100);
}

// Berlin's clocks show 02:30 at both times.
TEST(LogWithLimitsTest, TimesAreUtcWhereAnHourComesTwice) {
  setenv("TZ", "Europe/Berlin", 1);
  tzset();
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  std::ostringstream out;
  LogWithLimits("rollcalld", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  constexpr int64_t kSummer = 1792888200, kWinter = kSummer + 3600;  // 2026-10-25, 00:30 and 01:30
  for (const int64_t second : {kSummer, kWinter}) {
    const spdlog::log_clock::time_point at{std::chrono::seconds(second)};
    spdlog::default_logger()->log(at, spdlog::source_loc{}, spdlog::level::info, "a line");
  }
  spdlog::set_default_logger(before);
  unsetenv("TZ");
  tzset();
  EXPECT_EQ(out.str(),
            "[2026-10-25 00:30:00.000 UTC] [rollcalld] [info] a line\n"
            "[2026-10-25 01:30:00.000 UTC] [rollcalld] [info] a line\n");
}

// Tests and tools have other sinks.
TEST(LogAlwaysTest, WritesToASinkWithoutLimits) {
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  std::ostringstream out;
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "plain", std::make_shared<spdlog::sinks::ostream_sink_st>(out)));
  spdlog::set_pattern("%n %l %v");
  LogAlways("audit");
  spdlog::set_level(spdlog::level::warn);
  LogAlways("of a level that is off");
  spdlog::set_level(spdlog::level::info);
  spdlog::set_default_logger(before);
  EXPECT_EQ(out.str(), "plain info audit\n");
}

TEST_F(LimitedLogTest, TheFirstLineAfterAFloodFollowsTheNumberOfThoseLeftOut) {
  Warn(103, 0);
  Written();
  now_ns_ += 60 * kSecond;
  log_.warn("no tick from node-7");
  EXPECT_EQ(Written(),
            "rollcalld warning left out 3 lines of this log: more than 10 a second came\n"
            "rollcalld warning no tick from node-7\n");
}

TEST_F(LimitedLogTest, AQuietMinuteMakesRoomForABurst) {
  Warn(1000, 0);
  now_ns_ += 60 * kSecond;
  log_.flush();
  Written();
  Warn(100, 0);
  log_.flush();
  EXPECT_EQ(CountWritten(), 100);
}

}  // namespace
}  // namespace rollcall
