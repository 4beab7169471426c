// SPDX-License-Identifier: Apache-2.0
// The lists of several daemons as one.
#include "daemon/fleet/fleet_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::ElementsAre;

v1::JobStatus Job(const std::string& tenant, const std::string& name,
                  const std::string& state = "running", int alive = 1) {
  v1::JobStatus job;
  job.set_tenant(tenant);
  job.set_name(name);
  job.set_state(state);
  job.set_processes_alive(alive);
  return job;
}

std::string Nobody(const std::string& /*tenant*/, const std::string& /*job*/) { return ""; }

std::vector<std::string> Join(const std::vector<DaemonJobs>& lists, const OwnerName& owner) {
  std::vector<std::string> joined;
  for (const FleetJob& one : JoinJobs(lists, owner)) {
    const v1::JobStatus& job = lists[one.daemon].jobs[one.place];
    joined.push_back(absl::StrCat(job.tenant(), "/", job.name(), " ", lists[one.daemon].daemon));
  }
  return joined;
}

TEST(FleetJobs, ComeInTheOrderOfOneDaemonsList) {
  EXPECT_THAT(Join({{"a", {Job("t", "z", "hung"), Job("s", "y"), Job("t", "b")}, 3},
                    {"b", {Job("t", "a", "suspected"), Job("t", "c", "ended")}, 2}},
                   &Nobody),
              ElementsAre("t/a b", "t/z a", "s/y a", "t/b a", "t/c b"));
}

TEST(FleetJobs, OfTwoTenantsWithTheSameNameAreTwo) {
  EXPECT_THAT(Join({{"a", {Job("s", "job")}, 1}, {"b", {Job("t", "job")}, 1}}, &Nobody),
              ElementsAre("s/job a", "t/job b"));
}

TEST(FleetJobs, ThatTwoDaemonsListAreTheOwners) {
  const auto owner = [](const std::string&, const std::string&) { return std::string("b"); };
  EXPECT_THAT(Join({{"a", {Job("t", "job", "running", 8)}, 1},
                    {"b", {Job("t", "job", "ended", 0)}, 1},
                    {"c", {Job("t", "job", "running", 9)}, 1}},
                   owner),
              ElementsAre("t/job b"));
}

TEST(FleetJobs, OfUnknownOwnersAreThoseWithMoreLiveProcesses) {
  EXPECT_THAT(Join({{"a", {Job("t", "job", "running", 8)}, 1},
                    {"b", {Job("t", "job", "running", 9)}, 1},
                    {"c", {Job("t", "job", "running", 9)}, 1}},
                   &Nobody),
              ElementsAre("t/job b"));
}

}  // namespace
}  // namespace rollcall
