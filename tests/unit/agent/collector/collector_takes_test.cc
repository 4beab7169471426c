// SPDX-License-Identifier: Apache-2.0
// A collector that has only some of the jobs of the host.
#include <set>

#include "collector_fixture.h"

namespace rollcall {
namespace {

class CollectorTakesTest : public CollectorTest {
 protected:
  CollectorTakesTest() {
    taken_ = {"train"};
    asked_ = 0;
  }

  CollectorOptions OptionsWithJobs() {
    CollectorOptions options = Options();
    options.takes = [this](const std::string& tenant, const std::string& job) {
      ++asked_;
      return taken_.count(tenant + job) != 0 ? turn_ : 0;
    };
    return options;
  }
  void AddProcess(const Child& child, const std::string& job) {
    SegmentBuilder segment;
    snprintf(segment.header()->job, sizeof(segment.header()->job), "%s", job.c_str());
    segment.AddAllReduce(segment.AddComm(5, 0, 2), 5000);
    WriteSegment(child, &segment);
  }

  std::set<std::string> taken_;
  uint64_t turn_ = 1;
  int asked_ = 0;
};

std::set<std::string> JobsOf(const v1::Tick& tick) {
  std::set<std::string> jobs;
  for (const v1::ProcessUpdate& process : tick.processes()) jobs.insert(process.identity().job());
  return jobs;
}

TEST_F(CollectorTakesTest, ReportsOnlyTheJobsThatItTakes) {
  const Child train, other;
  AddProcess(train, "train");
  AddProcess(other, "other");
  Collector collector(OptionsWithJobs());
  const v1::Tick tick = collector.Collect(1, true);
  EXPECT_EQ(Only(tick).identity().job(), "train");
  EXPECT_TRUE(collector.served().Has({train.pid(), train.start_time()}));
  EXPECT_FALSE(collector.served().Has({other.pid(), other.start_time()}));
  EXPECT_EQ(asked_, 2);
}

TEST_F(CollectorTakesTest, SendsTheWholeStateWhenAJobComes) {
  const Child train, other;
  AddProcess(train, "train");
  AddProcess(other, "other");
  Collector collector(OptionsWithJobs());
  collector.Collect(1, true);
  EXPECT_FALSE(collector.Collect(2, false).whole());
  taken_.insert("other");
  const v1::Tick tick = collector.Collect(3, false);
  EXPECT_TRUE(tick.whole());
  EXPECT_EQ(JobsOf(tick), (std::set<std::string>{"other", "train"}));
  for (const v1::ProcessUpdate& process : tick.processes()) {
    EXPECT_EQ(process.communicators_size(), 1);
    EXPECT_EQ(process.communicators(0).records().position_size(), 1);
  }
  EXPECT_FALSE(collector.Collect(4, false).whole());
}

// It went to another stream and came back between two ticks.
TEST_F(CollectorTakesTest, SendsTheWholeStateWhenAJobHasBeenElsewhere) {
  const Child train;
  AddProcess(train, "train");
  Collector collector(OptionsWithJobs());
  collector.Collect(1, true);
  EXPECT_FALSE(collector.Collect(2, false).whole());
  ++turn_;
  const v1::Tick tick = collector.Collect(3, false);
  EXPECT_TRUE(tick.whole());
  EXPECT_EQ(Only(tick).identity().job(), "train");
  EXPECT_FALSE(collector.Collect(4, false).whole());
}

TEST_F(CollectorTakesTest, SendsTheWholeStateWhenAJobGoes) {
  const Child train, other;
  AddProcess(train, "train");
  AddProcess(other, "other");
  taken_ = {"train", "other"};
  Collector collector(OptionsWithJobs());
  collector.Collect(1, true);
  taken_ = {"other"};
  const v1::Tick tick = collector.Collect(2, false);
  EXPECT_TRUE(tick.whole());
  EXPECT_EQ(JobsOf(tick), std::set<std::string>{"other"});
  EXPECT_FALSE(collector.served().Has({train.pid(), train.start_time()}));
}

TEST_F(CollectorTakesTest, ReportsTheEndOfAProcessThatEndedBeforeItsJobCame) {
  Child other;
  AddProcess(other, "other");
  Collector collector(OptionsWithJobs());
  EXPECT_EQ(collector.Collect(1, true).processes_size(), 0);
  other.Exit(3);
  collector.Collect(2, false);
  taken_ = {"other"};
  const v1::Tick tick = collector.Collect(3, false);
  EXPECT_EQ(Only(tick).evidence().exit_code(), 3);
  EXPECT_EQ(Only(tick).communicators_size(), 1);
}

}  // namespace
}  // namespace rollcall
