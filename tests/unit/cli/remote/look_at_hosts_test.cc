// SPDX-License-Identifier: Apache-2.0
// Looks at hosts by a stand-in for ssh on the path, which behaves as hosts do, good and bad.
#include "cli/remote/look_at_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// The arguments end with "-- HOST LINE". The look of a good host is in the folder, without the name
// of the host.
constexpr char kStandIn[] = R"sh(#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2
token=$(printf '%s' "$3" | sed -n 's/.*--look=\([0-9a-f]*\).*/\1/p')
head() { printf 'Welcome to %s\nrollcall-look %s %d\n' "$host" "$token" "$1"; }
case $host in
  good*) head "$(wc -c <"$0.look")"; cat "$0.look" ;;
  slow*) sleep 0.2; head 3; printf '\022\001x' ;;
  hangs*) exec sleep 1000 ;;
  fails*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255 ;;
  rubbish*) head 6; printf 'abcdef' ;;
  short*) head 6; printf 'abc' ;;
  floods*) exec yes ;;
  complains*) exec yes 3>&1 >&2 ;;
  large*) head 99999999 ;;
esac
)sh";

class LookAtHostsTest : public testing::Test {
 protected:
  LookAtHostsTest() : path_(getenv("PATH")) {
    tree_.Write("ssh", kStandIn);
    std::filesystem::permissions(tree_.root() + "/ssh", std::filesystem::perms::owner_all);
    v1::HostLook look;
    for (int i = 0; i < 8; ++i) look.add_processes()->mutable_process()->set_pid(100 + i);
    tree_.Write("ssh.look", look.SerializeAsString());
    setenv("PATH", absl::StrCat(tree_.root(), ":", path_).c_str(), 1);
  }
  ~LookAtHostsTest() override { setenv("PATH", path_.c_str(), 1); }

  static std::vector<v1::HostLook> Look(const std::string& hosts, RemoteLimits limits = {},
                                        ByteBudget* budget = nullptr) {
    RemoteWork work;
    work.arguments = {"diagnose"};
    work.limits = limits;
    work.budget = budget;
    const auto targets = HostTargets(hosts, &IsAnyHost);
    return targets.ok() ? LookAtHosts(*targets, work) : std::vector<v1::HostLook>();
  }

  static bool IsAnyHost(const std::string& /*host*/) { return true; }
  static bool IsNoHost(const std::string& /*host*/) { return false; }

  const std::string path_;
  const TemporaryTree tree_;
};

TEST_F(LookAtHostsTest, EachHostHasItsLookInTheirOrder) {
  const std::vector<v1::HostLook> looks = Look("good-1,slow-2,good-3");
  ASSERT_THAT(looks, SizeIs(3));
  EXPECT_EQ(looks[0].host(), "good-1");
  EXPECT_EQ(looks[1].host(), "slow-2");
  EXPECT_EQ(looks[0].processes_size(), 8);
  EXPECT_EQ(looks[1].processes_size(), 0);
  for (const v1::HostLook& look : looks) EXPECT_EQ(look.error(), "");
}

TEST_F(LookAtHostsTest, NamesTheHostThatDoesNotAnswerAndReadsTheOthers) {
  RemoteLimits limits;
  limits.host_ns = 5 * kSecond;  // for those that answer, on a busy machine
  limits.total_ns = 300 * kSecond;
  const int64_t begun_ns = MonotonicNs();
  const std::vector<v1::HostLook> looks =
      Look("hangs,fails,good,rubbish,short,floods,complains,large", limits);
  const int64_t took_ns = MonotonicNs() - begun_ns;
  ASSERT_THAT(looks, SizeIs(8));
  EXPECT_EQ(looks[0].error(), "it did not answer in time");
  EXPECT_EQ(looks[1].error(), "ssh: connect to host fails port 22: Connection refused");
  EXPECT_EQ(looks[2].error(), "");
  EXPECT_EQ(looks[2].processes_size(), 8);
  EXPECT_EQ(looks[3].error(), "what it sent is not a look at a host");
  EXPECT_EQ(looks[4].error(), "ssh ended with 0");
  EXPECT_EQ(looks[5].error(), "it printed too much besides its look");
  EXPECT_EQ(looks[6].error(), "it did not answer in time: y");
  EXPECT_EQ(looks[7].error(), "it sent a look of a size that is not allowed");
  EXPECT_EQ(looks[0].host(), "hangs");
  EXPECT_LT(took_ns, 60 * kSecond);
}

TEST_F(LookAtHostsTest, TheTimeForAllHostsEndsTheLook) {
  RemoteLimits limits;
  limits.at_once = 1;
  limits.total_ns = 5 * kSecond;  // for the first one, on a busy machine
  const std::vector<v1::HostLook> looks = Look("good,hangs,slow", limits);
  EXPECT_EQ(looks[0].error(), "");
  EXPECT_EQ(looks[1].error(), "it did not answer in time");
  EXPECT_EQ(looks[2].error(), "it was not asked, because the time for all hosts was over");
}

TEST_F(LookAtHostsTest, AllLooksTogetherHaveALimit) {
  RemoteLimits limits;
  limits.at_once = 1;
  limits.total_ns = 250 * kSecond;
  ByteBudget budget(8'000);
  const std::vector<v1::HostLook> looks =
      Look("good-1,good-2,good-3,good-4,good-5", limits, &budget);
  EXPECT_EQ(looks.front().error(), "");
  EXPECT_EQ(looks.back().error(), "what it sent is too large");
}

// As many looks fit as one after the other, also if all arrive at once.
TEST_F(LookAtHostsTest, TheLimitIsNotPassedByLooksThatArriveTogether) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 32; ++i) hosts.push_back(absl::StrCat("good-", i));
  const auto count_seen = [&hosts](size_t at_once) {
    RemoteLimits limits;
    limits.at_once = at_once;
    limits.total_ns = 250 * kSecond;
    ByteBudget budget(20'000);
    const std::vector<v1::HostLook> looks = Look(absl::StrJoin(hosts, ","), limits, &budget);
    return std::count_if(looks.begin(), looks.end(),
                         [](const v1::HostLook& look) { return look.error().empty(); });
  };
  const auto one_by_one = count_seen(1);
  EXPECT_GT(one_by_one, 0);
  EXPECT_LT(one_by_one, 32);
  EXPECT_LE(count_seen(32), one_by_one);
}

TEST_F(LookAtHostsTest, ANameIsAFileOnlyIfItIsNotAHost) {
  const std::string before = std::filesystem::current_path();
  tree_.Write("node-1", "good-1\ngood-2\n");
  std::filesystem::current_path(tree_.root());
  const auto host = HostTargets("node-1", &IsAnyHost), file = HostTargets("node-1", &IsNoHost),
             path = HostTargets("./node-1", &IsAnyHost),
             missing = HostTargets("./node-2", &IsAnyHost);
  std::filesystem::current_path(before);
  ASSERT_TRUE(host.ok() && file.ok() && path.ok());
  EXPECT_THAT(*host, SizeIs(1));
  EXPECT_THAT(*file, SizeIs(2));
  EXPECT_THAT(*path, SizeIs(2));
  EXPECT_EQ(missing.status().message(), "--hosts: cannot read the file ./node-2");
}

TEST_F(LookAtHostsTest, FiveHundredAndTwelveHostsAreSeen) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 512; ++i) hosts.push_back(absl::StrCat(i % 100 == 7 ? "fails-" : "good-", i));
  tree_.Write("hosts", absl::StrJoin(hosts, "\n"));
  RemoteLimits limits;
  limits.host_ns = limits.total_ns = 250 * kSecond;
  const int64_t begun_ns = MonotonicNs();
  const std::vector<v1::HostLook> looks = Look(tree_.root() + "/hosts", limits);
  const int64_t took_ns = MonotonicNs() - begun_ns;
  ASSERT_THAT(looks, SizeIs(512));
  size_t seen = 0;
  for (const v1::HostLook& look : looks) seen += look.error().empty() ? 1 : 0;
  EXPECT_EQ(seen, 506u);
  std::cout << "512 hosts in " << took_ns / 1'000'000 << " ms\n";
}

// The second host is looked at when the first one has answered.
TEST_F(LookAtHostsTest, LooksEndTogether) {
  RemoteLimits limits;
  limits.at_once = 1;
  const std::vector<v1::HostLook> looks = Look("good-1,slow-2", limits);
  EXPECT_GE(looks[0].ended_ns() - looks[1].ended_ns(), kSecond / 5);
}

TEST_F(LookAtHostsTest, ATargetThatCannotBeLookedAtIsNamed) {
  RemoteTarget target;
  target.name = "train-1";
  target.error = "the pod does not run: Pending";
  const std::vector<v1::HostLook> looks = LookAtHosts({target}, {});
  ASSERT_THAT(looks, SizeIs(1));
  EXPECT_EQ(looks[0].host(), "train-1");
  EXPECT_EQ(looks[0].error(), "the pod does not run: Pending");
}

TEST_F(LookAtHostsTest, NodesOfSlurmAndPodsOfKubernetesAreAskedFor) {
  tree_.Write("scontrol",
              "#!/bin/sh\nif [ \"$2\" = hostnames ]; then echo n1; echo n2; exit; fi\n"
              "[ \"$4\" = 9_4 ] && echo \"JobId=12 JobState=RUNNING NodeList=n[1-2]\"\n");
  tree_.Write("kubectl",
              "#!/bin/sh\necho '{\"items\": [{\"metadata\": {\"name\": \"a-0\", \"namespace\": "
              "\"ml\"}, \"spec\": {\"containers\": [{\"name\": \"job\"}]}, \"status\": "
              "{\"phase\": \"Running\"}}]}'\n");
  for (const char* name : {"/scontrol", "/kubectl"}) {
    std::filesystem::permissions(tree_.root() + name, std::filesystem::perms::owner_all);
  }
  const int64_t until_ns = MonotonicNs() + 60 * kSecond;
  const auto nodes = SlurmTargets("9_4", until_ns);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ(nodes->job, "12");
  ASSERT_THAT(nodes->targets, SizeIs(2));
  EXPECT_EQ(nodes->targets[1].name, "n2");
  EXPECT_EQ(nodes->targets[1].command("x")[1], "--jobid=12");
  EXPECT_EQ(nodes->targets[1].command("x")[2], "--nodelist=n2");
  const auto pods = KubernetesTargets("ml/app=a", "", until_ns);
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_THAT(*pods, SizeIs(1));
  EXPECT_EQ((*pods)[0].command("x")[5], "a-0");
  EXPECT_THAT(std::string(SlurmTargets("--x", until_ns).status().message()),
              HasSubstr("number of a job"));
}

}  // namespace
}  // namespace rollcall
