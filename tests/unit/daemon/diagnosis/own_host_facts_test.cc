// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/own_host_facts.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "daemon/words/host_fact_words.h"

namespace rollcall {
namespace {

using K = HostFactKind;

constexpr int32_t kOwnPid = 4000, kForeignPid = 77;

const std::vector<HostFact> kGpuUsers = {
    {K::kGpuProcess, "GPU 0000:3b:00.0", 0, "", 0, kOwnPid},
    {K::kGpuProcess, "GPU 0000:4b:00.0", 0, "", 0, kForeignPid}};

// What is left of the fact in an incident of a job with one process on the host, beside other
// facts.
std::vector<HostFact> Kept(const HostFact& fact, const std::vector<HostFact>& beside = kGpuUsers) {
  JobState job;
  job.processes.resize(2);
  job.processes[0].host = "node-1";
  job.processes[0].pid = kOwnPid;
  job.processes[1].host = "node-2";
  job.processes[1].pid = kForeignPid;
  HostFacts facts;
  facts.facts = beside;
  facts.facts.push_back(fact);
  KeepOwnHostFacts(job, "node-1", &facts);
  return {facts.facts.begin() + static_cast<std::ptrdiff_t>(beside.size()), facts.facts.end()};
}

TEST(OwnHostFactsTest, MessagesAboutTheJobsProcessesStay) {
  for (const K kind : {K::kOomKill, K::kHungTask, K::kXid, K::kLockup}) {
    const auto kept = Kept({kind, "", 0, "a line", 5, kOwnPid});
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].text, "a line");
    EXPECT_EQ(kept[0].pid, kOwnPid);
  }
}

TEST(OwnHostFactsTest, MessagesAboutNoProcessStay) {
  const auto kept = Kept({K::kXid, "GPU 0000:3b:00.0", 74, "NVLink: fatal error", 5, 0});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].text, "NVLink: fatal error");
}

TEST(OwnHostFactsTest, MessagesAboutOthersAreRemoved) {
  EXPECT_TRUE(
      Kept({K::kXid, "GPU 0000:4b:00.0", 31, "pid=77, name=secret", 5, kForeignPid}).empty());
  EXPECT_TRUE(Kept({K::kOomKill, "", 0, "Memory cgroup out of memory: Killed process 77 (secret)",
                    5, kForeignPid})
                  .empty());
}

TEST(OwnHostFactsTest, WhatConcernsTheHostStaysWithoutTheOthersNames) {
  for (const HostFact& fact :
       {HostFact{K::kOomKill, "", 0, "Out of memory: Killed process 77 (secret)", 5, kForeignPid},
        HostFact{K::kLockup, "", 0, "soft lockup [secret:77]", 5, kForeignPid},
        HostFact{K::kHungTask, "", 0, "INFO: task secret:77 blocked", 5, kForeignPid},
        HostFact{K::kXid, "GPU 0000:3b:00.0", 79, "pid=77, name=secret", 5, kForeignPid}}) {
    const auto kept = Kept(fact);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].kind, fact.kind);
    EXPECT_EQ(kept[0].pid, 0);
    EXPECT_EQ(kept[0].text, "");
  }
  EXPECT_EQ(HostFactInWords(Kept({K::kOomKill, "", 0, "Out of memory", 5, kForeignPid})[0]),
            "the kernel killed a process for lack of memory");
  EXPECT_EQ(HostFactInWords(Kept({K::kHungTask, "", 0, "INFO", 5, kForeignPid})[0]),
            "the kernel reported a process as blocked");
}

// Its Xid names the GPU's address, and often a process of the driver or none of the job's.
TEST(OwnHostFactsTest, AnErrorOfAGpuWithoutKnownUsersStays) {
  const HostFact xid = {K::kXid, "GPU 0000:3b:00.0", 79, "pid=900, name=nv-hostengine", 5, 900};
  const HostFact lost = {K::kGpuLost, "GPU #3", 0, "GPU is lost", 0, 0};
  const std::vector<HostFact> off_the_bus = {lost, kGpuUsers[1]}, no_nvml;
  for (const auto& beside : {off_the_bus, no_nvml}) {
    const auto kept = Kept(xid, beside);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].value, 79);
    EXPECT_EQ(kept[0].pid, 0);
    EXPECT_EQ(kept[0].text, "");
  }
}

TEST(OwnHostFactsTest, IgnoresMistakesOfOtherPrograms) {
  for (const int64_t number : {13, 31, 43, 45}) {
    EXPECT_TRUE(
        Kept({K::kXid, "GPU 0000:3b:00.0", number, "pid=77, name=secret", 5, 77}, {}).empty());
  }
}

// A data loader of the job, perhaps: the agent knows the ranks only.
TEST(OwnHostFactsTest, KeepsAControlGroupKillIfTheJobMetItsLimit) {
  const HostFact kill = {K::kOomKill, "", 0, "Memory cgroup out of memory: Killed process 77", 5,
                         kForeignPid};
  const auto kept = Kept(kill, {{K::kCgroupOom, "", 1, "", 0, kOwnPid}});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].pid, 0);
  EXPECT_TRUE(Kept(kill, {{K::kCgroupOom, "", 1, "", 0, kForeignPid}}).empty());
}

}  // namespace
}  // namespace rollcall
