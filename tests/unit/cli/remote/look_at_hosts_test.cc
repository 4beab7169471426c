// SPDX-License-Identifier: Apache-2.0
// Looks at hosts by a stand-in for ssh on the path, which behaves as hosts do, good and bad.
#include "cli/remote/look_at_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
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
  hangs*) exec sleep 60 ;;
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

  static std::vector<v1::HostLook> Look(const std::string& hosts, RemoteLimits limits = {}) {
    RemoteWork work;
    work.arguments = {"diagnose"};
    work.limits = limits;
    const auto targets = HostTargets(hosts);
    return targets.ok() ? LookAtHosts(*targets, work) : std::vector<v1::HostLook>();
  }

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

TEST_F(LookAtHostsTest, WhoDoesNotAnswerIsNamedAndTheOthersAreSeen) {
  RemoteLimits limits;
  limits.host_ns = kSecond;
  const int64_t begun_ns = MonotonicNs();
  const std::vector<v1::HostLook> looks =
      Look("hangs,fails,good,rubbish,short,floods,complains,large", limits);
  const int64_t took_ns = MonotonicNs() - begun_ns;
  ASSERT_THAT(looks, SizeIs(8));
  EXPECT_EQ(looks[0].error(), "it did not answer in time");
  EXPECT_EQ(looks[1].error(), "ssh: connect to host fails port 22: Connection refused");
  EXPECT_EQ(looks[2].error(), "");
  EXPECT_EQ(looks[2].processes_size(), 8);
  EXPECT_EQ(looks[3].error(), "what it sent is no look at a host");
  EXPECT_EQ(looks[4].error(), "ssh ended with 0");
  EXPECT_EQ(looks[5].error(), "it printed too much that is no look");
  EXPECT_EQ(looks[6].error(), "it did not answer in time: y");
  EXPECT_EQ(looks[7].error(), "it sent a look of a size that is not allowed");
  EXPECT_EQ(looks[0].host(), "hangs");
  EXPECT_LT(took_ns, 8 * kSecond);
}

TEST_F(LookAtHostsTest, TheTimeForAllHostsEndsTheLook) {
  RemoteLimits limits;
  limits.at_once = 1;
  limits.total_ns = kSecond;
  const std::vector<v1::HostLook> looks = Look("good,hangs,slow", limits);
  EXPECT_EQ(looks[0].error(), "");
  EXPECT_EQ(looks[1].error(), "it did not answer in time");
  EXPECT_EQ(looks[2].error(), "it was not asked, because the time for all hosts was over");
}

TEST_F(LookAtHostsTest, AllLooksTogetherHaveALimit) {
  RemoteLimits limits;
  limits.at_once = 1;
  limits.most_memory = 8'000;
  const std::vector<v1::HostLook> looks = Look("good-1,good-2,good-3,good-4,good-5", limits);
  EXPECT_EQ(looks.front().error(), "");
  EXPECT_EQ(looks.back().error(), "what it sent is too large");
}

TEST_F(LookAtHostsTest, FiveHundredAndTwelveHostsAreSeenInTime) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 512; ++i) hosts.push_back(absl::StrCat(i % 100 == 7 ? "fails-" : "good-", i));
  tree_.Write("hosts", absl::StrJoin(hosts, "\n"));
  const int64_t begun_ns = MonotonicNs();
  const std::vector<v1::HostLook> looks = Look(tree_.root() + "/hosts");
  const int64_t took_ns = MonotonicNs() - begun_ns;
  ASSERT_THAT(looks, SizeIs(512));
  size_t seen = 0;
  for (const v1::HostLook& look : looks) seen += look.error().empty() ? 1 : 0;
  EXPECT_EQ(seen, 506u);
  EXPECT_LT(took_ns, 30 * kSecond);
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
              "echo \"JobId=$4 JobState=RUNNING NodeList=n[1-2]\"\n");
  tree_.Write("kubectl",
              "#!/bin/sh\necho '{\"items\": [{\"metadata\": {\"name\": \"a-0\", \"namespace\": "
              "\"ml\"}, \"spec\": {\"containers\": [{\"name\": \"job\"}]}, \"status\": "
              "{\"phase\": \"Running\"}}]}'\n");
  for (const char* name : {"/scontrol", "/kubectl"}) {
    std::filesystem::permissions(tree_.root() + name, std::filesystem::perms::owner_all);
  }
  const int64_t until_ns = MonotonicNs() + 10 * kSecond;
  const auto nodes = SlurmTargets("7", until_ns);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_THAT(*nodes, SizeIs(2));
  EXPECT_EQ((*nodes)[1].name, "n2");
  EXPECT_EQ((*nodes)[1].command("x")[2], "--nodelist=n2");
  const auto pods = KubernetesTargets("ml/app=a", "", until_ns);
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_THAT(*pods, SizeIs(1));
  EXPECT_EQ((*pods)[0].command("x")[5], "a-0");
  EXPECT_THAT(std::string(SlurmTargets("--x", until_ns).status().message()),
              HasSubstr("number of a job"));
}

}  // namespace
}  // namespace rollcall
