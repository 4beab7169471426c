// SPDX-License-Identifier: Apache-2.0
// A job on 512 hosts, each of them a stand-in for ssh that has a look of its own, up to the
// verdict.
#include "cli/diagnose/elsewhere.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "daemon/looks/judge.h"
#include "look_builder.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kHosts = 512;
constexpr int kRanksOfHost = 8;

const SeenStack kInTheCall = {
    {{"c10d::Work::wait", ""},
     {"all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 9},
     {"train", "/x/train.py", 20}}};
const SeenStack kInAnotherPlace = {
    {{"clock_nanosleep", ""}, {"validate", "/x/train.py", 50}, {"train", "/x/train.py", 30}}};

constexpr char kStandInForSsh[] = R"sh(#!/bin/sh
while [ "$1" != -- ]; do shift; done
token=$(printf '%s' "$3" | sed -n 's/.*--look=\([0-9a-f]*\).*/\1/p')
case $2 in
  gone*) echo "ssh: connect to host $2 port 22: No route to host" >&2; exit 255 ;;
esac
look=${0%/*}/$2.second
[ -e "$look.begun" ] || look=${0%/*}/$2.first
: >"${0%/*}/$2.second.begun"
printf 'rollcall-look %s %d\n' "$token" "$(wc -c <"$look")"
cat "$look"
)sh";

// Eight ranks of the job, of which all but one stand in a call.
v1::HostLook LookAtHost(int host, int64_t later_ns) {
  LookBuilder builder(absl::StrCat("node-", host));
  for (int i = 0; i < kRanksOfHost; ++i) {
    const int rank = host * kRanksOfHost + i;
    const SeenStack& at = rank == 1234 ? kInAnotherPlace : kInTheCall;
    v1::ProcessLook* process = builder.Add(rank, {at, at}, kHosts * kRanksOfHost);
    process->clear_marks();
    LookBuilder::Mark(process, "rendezvous", "node-0:29500", false);
    for (int sample = 0; sample < 2; ++sample) {
      process->mutable_samples(sample)->set_taken_ns(kLookBegunNs + later_ns +
                                                     sample * kSecond / 2);
    }
  }
  builder.look.set_begun_ns(kLookBegunNs + later_ns);
  builder.look.set_ended_ns(kLookBegunNs + later_ns + kSecond);
  return builder.look;
}

TEST(ElsewhereTest, AJobOnFiveHundredAndTwelveHostsIsJudged) {
  const TemporaryTree tree;
  tree.Write("ssh", kStandInForSsh);
  std::filesystem::permissions(tree.root() + "/ssh", std::filesystem::perms::owner_all);
  std::vector<std::string> hosts;
  for (int host = 0; host < kHosts; ++host) {
    hosts.push_back(absl::StrCat("node-", host));
    tree.Write(hosts.back() + ".first", LookAtHost(host, 0).SerializeAsString());
    tree.Write(hosts.back() + ".second", LookAtHost(host, 20 * kSecond).SerializeAsString());
  }
  tree.Write("hosts", absl::StrJoin(hosts, "\n"));
  const std::string path = getenv("PATH");
  setenv("PATH", absl::StrCat(tree.root(), ":", path).c_str(), 1);
  ElsewhereFlags flags;
  flags.hosts = tree.root() + "/hosts";
  flags.within = "250s";  // on a busy machine
  const int64_t begun_ns = MonotonicNs();
  const auto elsewhere = Elsewhere::Find(flags, kSecond);
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  const std::vector<v1::HostLook> looks =
      elsewhere->Look([](int64_t) { return std::vector<std::string>{"diagnose"}; }, nullptr);
  const int64_t looked_ns = MonotonicNs();
  const std::vector<LookedAtJob> jobs = JudgeLooks(looks);
  const int64_t judged_ns = MonotonicNs();
  setenv("PATH", path.c_str(), 1);
  std::cout << kHosts << " hosts: looked in " << (looked_ns - begun_ns) / 1'000'000
            << " ms, judged in " << (judged_ns - looked_ns) / 1'000'000 << " ms\n";
  ASSERT_THAT(looks, SizeIs(kHosts));
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].ranks, static_cast<size_t>(kHosts * kRanksOfHost));
  ASSERT_FALSE(jobs[0].incident.verdicts().empty());
  EXPECT_EQ(jobs[0].incident.verdicts(0).culprit_ranks(), "1234");
  EXPECT_LT(judged_ns - looked_ns, 60 * kSecond);  // 0.8 s on a quiet machine
}

TEST(ElsewhereTest, ProcessesOfOtherJobsOfSlurmAreLeftOut) {
  LookBuilder builder;
  for (int rank = 0; rank < 3; ++rank) builder.Add(rank, {});
  LookBuilder::Mark(builder.look.mutable_processes(0), "slurm", "7.0", false);
  LookBuilder::Mark(builder.look.mutable_processes(1), "slurm", "77.0", false);
  v1::HostLook look = builder.look;
  KeepSlurmJob("7", &look);
  EXPECT_THAT(look.processes(), SizeIs(2));
  KeepSlurmJob("8", &look);
  EXPECT_THAT(look.processes(), SizeIs(2));
}

TEST(ElsewhereTest, ProcessesOfAnotherNodeOfTheSameMachineAreLeftOut) {
  LookBuilder builder("n1");
  for (int rank = 0; rank < 3; ++rank) builder.Add(rank, {});
  builder.look.mutable_processes(0)->mutable_process()->mutable_identity()->set_node("n1");
  builder.look.mutable_processes(1)->mutable_process()->mutable_identity()->set_node("n2");
  KeepSlurmJob("7", &builder.look);
  ASSERT_THAT(builder.look.processes(), SizeIs(2));
  EXPECT_EQ(builder.look.processes(1).process().identity().global_rank(), 2);
}

struct LimitsCase {
  const char* within;
  int64_t apart_s;
  int64_t host_s, total_s;  // 0 if it is an error
};

TEST(ElsewhereTest, SamplesFurtherApartHaveMoreTime) {
  const LimitsCase cases[] = {
      {"", 6, 25, 30},    {"", 2, 25, 30},   {"", 60, 79, 84},    {"2m", 60, 79, 120},
      {"30s", 6, 25, 30}, {"30s", 60, 0, 0}, {"64s", 60, 64, 64}, {"9s", 6, 0, 0},
  };
  for (const LimitsCase& c : cases) {
    const absl::StatusOr<RemoteLimits> limits = LimitsFor(c.within, c.apart_s * kSecond);
    ASSERT_EQ(limits.ok(), c.total_s > 0) << c.within << " " << c.apart_s;
    if (!limits.ok()) continue;
    EXPECT_EQ(limits->host_ns, c.host_s * kSecond) << c.within << " " << c.apart_s;
    EXPECT_EQ(limits->total_ns, c.total_s * kSecond) << c.within << " " << c.apart_s;
  }
  EXPECT_EQ(LimitsFor("30s", 60 * kSecond).status().message(),
            "--within=30s is too short for samples that are 60s apart: give --within=64s or more, "
            "or leave it out");
}

TEST(ElsewhereTest, ProcessNumbers) {
  EXPECT_THAT(PidsOf("7,8"), ElementsAre(7, 8));
  for (const char* text : {"", "7,", "x", "-1", "0", "7 8"}) EXPECT_THAT(PidsOf(text), IsEmpty());
}

TEST(ElsewhereTest, APlaceThatCannotBeReachedIsAnError) {
  ElsewhereFlags flags;
  flags.hosts = "-oProxyCommand=x";
  EXPECT_FALSE(Elsewhere::Find(flags, 6 * kSecond).ok());
  flags.hosts.clear();
  flags.kubernetes = "ml";
  EXPECT_FALSE(Elsewhere::Find(flags, 6 * kSecond).ok());
}

}  // namespace
}  // namespace rollcall
