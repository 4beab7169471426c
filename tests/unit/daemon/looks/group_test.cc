// SPDX-License-Identifier: Apache-2.0
// Which processes of looks are of one job.
#include "daemon/looks/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "look_builder.h"

namespace rollcall {
namespace {

struct Seen {
  const char* host;
  int rank;  // -1 if it has ended
  const char* launcher = "10";
  uint64_t start = 77;
  int world = 4;
  const char* address = "node-1:29500";
  uint32_t uid = 1000;
};

struct GroupCase {
  const char* name;
  std::vector<Seen> processes;
  // A job a line, each process by its place above, and behind "+" what was left behind.
  std::vector<std::string> jobs;
};

std::ostream& operator<<(std::ostream& out, const GroupCase& c) { return out << c.name; }

// The processes by host, and their places in the case by their pids.
std::vector<v1::HostLook> Looks(const std::vector<Seen>& processes) {
  std::map<std::string, LookBuilder> hosts;
  int32_t place = 0;
  for (const Seen& seen : processes) {
    LookBuilder& host = hosts.emplace(seen.host, LookBuilder(seen.host)).first->second;
    v1::ProcessLook* process = host.Add(seen.rank, {}, seen.world);
    if (seen.rank < 0) process->set_found_by(kFoundAsZombie);
    process->mutable_process()->set_pid(place++);
    process->mutable_process()->set_start_time(seen.start);
    process->mutable_process()->mutable_identity()->set_uid(seen.uid);
    process->clear_marks();
    LookBuilder::Mark(process, "rendezvous", seen.address,
                      absl::string_view(seen.address)[0] == '1');
    LookBuilder::Mark(process, "launcher", seen.launcher, true);
  }
  std::vector<v1::HostLook> looks;
  for (const auto& [name, host] : hosts) looks.push_back(host.look);
  return looks;
}

std::string Places(const std::vector<v1::HostLook>& looks, const std::vector<LookedAt>& members) {
  std::string text;
  for (const LookedAt& member : members) {
    absl::StrAppend(&text, text.empty() ? "" : " ", ProcessAt(looks, member).process().pid());
  }
  return text;
}

class GroupLooksTest : public testing::TestWithParam<GroupCase> {};

TEST_P(GroupLooksTest, FindsTheJobs) {
  const std::vector<v1::HostLook> looks = Looks(GetParam().processes);
  std::vector<std::string> jobs;
  for (const LookGroup& group : GroupLooks(looks)) {
    const std::string left = Places(looks, group.left_behind);
    jobs.push_back(absl::StrCat(Places(looks, group.members), left.empty() ? "" : " + ", left));
  }
  EXPECT_EQ(jobs, GetParam().jobs);
}

const GroupCase kCases[] = {
    {"one_job_on_two_hosts",
     {{"node-1", 0}, {"node-1", 1}, {"node-2", 2, "20"}, {"node-2", 3, "20"}},
     {"0 1 2 3"}},
    {"an_address_of_loopback_joins_no_hosts",
     {{"node-1", 0, "10", 77, 4, "127.0.0.1:9"}, {"node-2", 1, "10", 77, 4, "127.0.0.1:9"}},
     {"0", "1"}},
    {"users_have_jobs_of_their_own",
     {{"node-1", 0}, {"node-1", 1, "10", 77, 4, "node-1:29500", 1001}},
     {"0", "1"}},
    {"two_jobs_with_one_address_have_two_launchers",
     {{"node-1", 0, "10", 77, 2},
      {"node-1", 1, "10", 77, 2},
      {"node-1", 0, "20", 77, 2},
      {"node-1", 1, "20", 77, 2}},
     {"0 1", "2 3"}},
    {"two_jobs_with_one_address_on_two_hosts",
     {{"node-1", 0, "10", 50},
      {"node-1", 1, "10", 50},
      {"node-1", 0, "20", 90},
      {"node-1", 1, "20", 90},
      {"node-2", 2, "10", 50},
      {"node-2", 3, "10", 50},
      {"node-2", 2, "20", 90},
      {"node-2", 3, "20", 90}},
     {"2 3 6 7", "0 1 4 5"}},
    {"a_stray_does_not_part_the_hosts_of_a_job",
     {{"node-1", 0, "1", 5},
      {"node-1", 0},
      {"node-1", 1},
      {"node-2", 2, "20"},
      {"node-2", 3, "20"}},
     {"1 2 3 4 + 0"}},
    {"a_stray_on_another_host",
     {{"node-1", 0},
      {"node-1", 1},
      {"node-2", 0, "1", 5},
      {"node-2", 2, "20"},
      {"node-2", 3, "20"}},
     {"0 1 3 4 + 2"}},
    {"strays_on_both_hosts",
     {{"node-1", 0, "10", 90},
      {"node-1", 1, "10", 90},
      {"node-1", 1, "1", 5},
      {"node-2", 2, "20", 90},
      {"node-2", 3, "20", 90},
      {"node-2", 2, "1", 5},
      {"node-2", 3, "1", 5}},
     {"0 1 3 4 + 2 5 6"}},
    {"a_stray_of_one_shell_is_the_older_one",
     {{"node-1", 0, "10", 5, 2}, {"node-1", 0, "10", 77, 2}, {"node-1", 1, "10", 77, 2}},
     {"1 2 + 0"}},
    {"a_whole_run_that_is_older_leaves_a_newer_one_with_a_dead_rank_a_job",
     {{"node-1", 0, "1", 5, 2}, {"node-1", 1, "1", 5, 2}, {"node-1", 0, "10", 90, 2}},
     {"0 1", "2"}},
    {"ranks_with_launchers_of_their_own",
     {{"node-1", 0, "10"},
      {"node-1", 1, "11"},
      {"node-1", 1, "1", 5},
      {"node-1", 2, "12"},
      {"node-1", 3, "13"}},
     {"0 1 3 4 + 2"}},
    {"without_a_world_it_may_be_a_job",
     {{"node-1", 0, "10", 77, -1}, {"node-1", 1, "10", 77, -1}, {"node-1", 0, "1", 5, -1}},
     {"0 1", "2"}},
    {"an_ended_rank_is_no_twin", {{"node-1", 0}, {"node-1", 1}, {"node-1", -1}}, {"0 1 2"}},
};

INSTANTIATE_TEST_SUITE_P(All, GroupLooksTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

TEST(LookGroupTest, EachHasANameOfItsOwn) {
  const std::vector<LookGroup> groups = GroupLooks(Looks(kCases[3].processes));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "train.py");
  EXPECT_EQ(groups[1].name, "train.py-2");
}

TEST(LookGroupTest, AnAddressOfLoopbackIsOfOneHost) {
  const std::vector<v1::HostLook> looks = Looks(kCases[1].processes);
  EXPECT_TRUE(IsOfOneHost(looks, GroupLooks(looks)[0]));
  const std::vector<v1::HostLook> two = Looks(kCases[0].processes);
  EXPECT_FALSE(IsOfOneHost(two, GroupLooks(two)[0]));
}

TEST(LookGroupTest, ANameThatLooksLikeANumberedOneStaysUnique) {
  std::vector<v1::HostLook> looks = Looks({{"node-1", 0, "10", 77, 4, "a"},
                                           {"node-1", 0, "10", 77, 4, "b"},
                                           {"node-1", 0, "10", 77, 4, "c"},
                                           {"node-1", 0, "10", 77, 4, "d"}});
  const char* const wanted[] = {"train-2", "train", "train", "train-2"};
  for (int i = 0; i < 4; ++i) {
    looks[0].mutable_processes(i)->mutable_process()->mutable_identity()->set_job(wanted[i]);
  }
  std::vector<std::string> names;
  for (const LookGroup& group : GroupLooks(looks)) names.push_back(group.name);
  EXPECT_EQ(names, (std::vector<std::string>{"train-2", "train", "train-3", "train-2-2"}));
}

TEST(LookGroupTest, TellsSoManyRunsApart) {
  std::vector<std::string> launchers;
  for (int i = 0; i < 1000; ++i) launchers.push_back(absl::StrCat(i));
  std::vector<Seen> processes;
  for (const std::string& launcher : launchers) {
    processes.push_back({"node-1", 0, launcher.c_str(), 77, -1});
  }
  const std::vector<LookGroup> groups = GroupLooks(Looks(processes));
  EXPECT_EQ(groups.size(), 64u);
  EXPECT_EQ(groups.back().members.size(), 1000u - 63u);
}

}  // namespace
}  // namespace rollcall
