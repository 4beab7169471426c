// SPDX-License-Identifier: Apache-2.0
// What the agent does when a daemon asks for facts about its host.
#include "agent/link/host_facts_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "host_tree.h"

namespace rollcall {
namespace {

constexpr ProcessId kJobs = {HostTree::kPid, 7};
constexpr ProcessId kForeign = {HostTree::kPid + 1, 7};

class HostFactsServiceTest : public testing::Test {
 protected:
  // The programs are scripts, which leave a trace of each start.
  void SetUp() override {
    for (const char* name : {"rollcall-probe", "rollcall-probe-nvml"}) {
      programs_.Write(
          name, "#!/bin/sh\necho x >> " + programs_.root() +
                    "/started\nprintf 'io_error\\tsda\\t0\\t2000000000\\t0\\tpassword=hunter22 "
                    "on sda\\nend\\tok\\t\\n'\n");
      std::filesystem::permissions(programs_.root() + "/" + name, std::filesystem::perms(0700));
    }
    options_.gather.programs = programs_.root();
    options_.gather.root = host_.root();
    options_.max_per_minute = 2;
  }
  bool HasStarted() const { return std::filesystem::exists(programs_.root() + "/started"); }

  HostFactsService Make() {
    return HostFactsService(options_, [](ProcessId process) { return process == kJobs; });
  }

  const HostTree host_;
  const TemporaryTree programs_;
  HostFactsOptions options_;
};

TEST_F(HostFactsServiceTest, NothingRunsBeforeARequest) {
  const HostFactsService service = Make();
  EXPECT_FALSE(HasStarted());
}

TEST_F(HostFactsServiceTest, LooksForTheProcessesThatItHasReported) {
  HostFactsService service = Make();
  const v1::HostFacts facts = service.Take({kForeign, kJobs});
  EXPECT_EQ(facts.error(), "");
  ASSERT_GT(facts.facts_size(), 0);
  EXPECT_EQ(facts.facts(0).kind(), "io_error");
  EXPECT_DOUBLE_EQ(facts.facts(0).age_seconds(), 2);
  EXPECT_GT(facts.probes_size(), 5);
  EXPECT_TRUE(HasStarted());
}

TEST_F(HostFactsServiceTest, HidesSecretsInWhatLeavesTheHost) {
  HostFactsService service = Make();
  const v1::HostFacts facts = service.Take({kJobs});
  EXPECT_FALSE(absl::StrContains(facts.DebugString(), "hunter22"));
  EXPECT_TRUE(absl::StrContains(facts.facts(0).text(), "on sda"));
}

TEST_F(HostFactsServiceTest, RefusesForProcessesThatItHasNotReported) {
  HostFactsService service = Make();
  const v1::HostFacts facts = service.Take({kForeign});
  EXPECT_TRUE(absl::StrContains(facts.error(), "watches none of these processes"));
  EXPECT_TRUE(facts.facts().empty());
  EXPECT_FALSE(HasStarted());
}

TEST_F(HostFactsServiceTest, RefusesWhereItIsSwitchedOff) {
  options_.is_on = false;
  HostFactsService service = Make();
  EXPECT_TRUE(absl::StrContains(service.Take({kJobs}).error(), "--host-facts=off"));
  EXPECT_FALSE(HasStarted());
}

TEST_F(HostFactsServiceTest, RefusesMoreThanItsLimit) {
  HostFactsService service = Make();
  EXPECT_EQ(service.Take({kJobs}).error(), "");
  EXPECT_EQ(service.Take({kJobs}).error(), "");
  EXPECT_TRUE(absl::StrContains(service.Take({kJobs}).error(), "at most 2 times a minute"));
}

}  // namespace
}  // namespace rollcall
