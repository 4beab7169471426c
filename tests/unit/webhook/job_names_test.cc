// SPDX-License-Identifier: Apache-2.0
#include "webhook/job_names.h"

#include <gtest/gtest.h>

#include <set>

namespace rollcall {
namespace {

TEST(FindPodJobTest, EachSystemNamesItsJobByLabelOrAnnotation) {
  for (const JobSource& source : JobSources()) {
    const PodJob by_label = FindPodJob({{{source.name, "train"}}, {}});
    EXPECT_EQ(by_label.name, "train") << source.system;
    EXPECT_EQ(by_label.source, &source) << source.system;
    EXPECT_EQ(by_label.group_label, source.group);
    EXPECT_EQ(FindPodJob({{}, {{source.name, "train"}}}).name, "train") << source.system;
  }
}

TEST(FindPodJobTest, TheFirstSystemOfTheTableCounts) {
  const std::vector<JobSource>& sources = JobSources();
  for (size_t i = 1; i < sources.size(); ++i) {
    const PodJob job =
        FindPodJob({{{sources[i - 1].name, "outer"}, {sources[i].name, "inner"}}, {}});
    EXPECT_EQ(job.name, "outer") << sources[i].system;
  }
}

TEST(FindPodJobTest, NoSystemIsTwiceInTheTable) {
  std::set<std::string> names;
  for (const JobSource& source : JobSources()) {
    EXPECT_TRUE(names.insert(source.name).second) << source.name;
  }
}

TEST(FindPodJobTest, RestartsOfJobSetAndVolcanoAreAttempts) {
  const PodJob set = FindPodJob(
      {{{"jobset.sigs.k8s.io/jobset-name", "train"}, {"jobset.sigs.k8s.io/restart-attempt", "2"}},
       {}});
  EXPECT_EQ(set.attempt, "2");
  EXPECT_EQ(set.attempt_variable, "JOBSET_RESTART_ATTEMPT");
  const PodJob volcano =
      FindPodJob({{{"volcano.sh/job-name", "train"}}, {{"volcano.sh/job-version", "3"}}});
  EXPECT_EQ(volcano.attempt, "3");
  EXPECT_EQ(volcano.attempt_variable, "VOLCANO_JOB_VERSION");
}

TEST(FindPodJobTest, TheAuthorsOwnAttemptCountsMore) {
  const PodJob job = FindPodJob(
      {{{"jobset.sigs.k8s.io/jobset-name", "train"}, {"jobset.sigs.k8s.io/restart-attempt", "2"}},
       {{"rollcall/attempt", "7"}}});
  EXPECT_EQ(job.attempt, "7");
  EXPECT_EQ(job.attempt_variable, "ROLLCALL_ATTEMPT");
}

TEST(FindPodJobTest, APodWithoutAJobHasNoName) {
  const PodJob job = FindPodJob({{{"app", "notebook"}}, {}});
  EXPECT_EQ(job.source, nullptr);
  EXPECT_EQ(job.name, "");
}

TEST(FindPodJobTest, TextThatIsNotANameIsPassedOver) {
  for (const char* text :
       {"", "a b", "a\nROLLCALL_TENANT=other", "\x1b[2J", "$(SECRET)", "a\xff"}) {
    const PodJob job =
        FindPodJob({{{"batch.kubernetes.io/job-name", "train"}}, {{"rollcall/job", text}}});
    EXPECT_EQ(job.name, "train") << text;
  }
  const std::string long_name(254, 'x');
  EXPECT_EQ(FindPodJob({{}, {{"rollcall/job", long_name}}}).name, "");
}

TEST(FindPodJobTest, TextThatIsNotANumberIsNotAnAttempt) {
  for (const char* text : {"", "-1", "1.5", "2a", "1234567890"}) {
    EXPECT_EQ(FindPodJob({{}, {{"rollcall/attempt", text}}}).attempt, "") << text;
  }
}

}  // namespace
}  // namespace rollcall
