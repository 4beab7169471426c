// SPDX-License-Identifier: Apache-2.0
// Jobs and incidents of all daemons, whichever one is asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet_fixture.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(FleetQueriesTest, EveryDaemonListsTheJobsOfAll) {
  a_.Report("m-job");
  b_.Report("z-job");
  b_.Report("b-job");
  c_.Report("n-job");
  for (const OneDaemon* one : {&a_, &b_, &c_}) {
    const v1::StatusResponse status = StatusOf(*one->fleet, {}, false);
    EXPECT_THAT(NamesIn(status),
                ElementsAre("b-job at b", "m-job at a", "n-job at c", "z-job at b"));
    EXPECT_EQ(status.jobs_total(), 4);
    EXPECT_THAT(SilentIn(status), IsEmpty());
    EXPECT_TRUE(status.has_now());
  }
}

TEST_F(FleetQueriesTest, JobsThatHangComeFirstWhicheverDaemonHasThem) {
  a_.Report("a-job");
  b_.Report("b-job");
  c_.Report("z-job");
  c_.Hang("z-job");
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet)), ElementsAre("z-job at c", "a-job at a", "b-job at b"));
}

TEST_F(FleetQueriesTest, APageIsAPartOfTheWholeListWithItsCommunicators) {
  for (const char* job : {"1", "4", "5"}) a_.Report(job);
  for (const char* job : {"2", "6"}) b_.Report(job);
  c_.Report("3");
  JobSelector page;
  page.offset = 1;
  page.most = 4;
  const v1::StatusResponse status = StatusOf(*a_.fleet, page, true);
  EXPECT_THAT(NamesIn(status), ElementsAre("2 at b", "3 at c", "4 at a", "5 at a"));
  EXPECT_EQ(status.jobs_total(), 6);
  for (const v1::JobStatus& job : status.jobs())
    EXPECT_EQ(job.communicators_size(), 1) << job.name();
  page.offset = 5;
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet, page, false)), ElementsAre("6 at b"));
  page.offset = 7;
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet, page, true)), IsEmpty());
}

TEST_F(FleetQueriesTest, AListMayBeLongerThanTheAnswersOfEachDaemon) {
  constexpr int kJobs = 1200;
  for (int i = 0; i < kJobs; ++i) b_.Report(absl::StrCat("b-", 10'000 + i));
  for (const char* job : {"a-1", "c-1"}) a_.Report(job);
  JobSelector page;
  page.offset = kJobs - 1;
  page.most = 10;
  const v1::StatusResponse status = StatusOf(*a_.fleet, page, true);
  EXPECT_THAT(NamesIn(status), ElementsAre("b-11198 at b", "b-11199 at b", "c-1 at a"));
  EXPECT_EQ(status.jobs(0).communicators_size(), 1);
  EXPECT_EQ(status.jobs_total(), kJobs + 2);
  page.offset = 0;
  page.most = kJobs;
  EXPECT_EQ(StatusOf(*a_.fleet, page, false).jobs_size(), static_cast<int>(kMaxJobsListed));
}

TEST_F(FleetQueriesTest, AHostHasItsJobsOfAllDaemons) {
  a_.Report("1");
  b_.Report("2");
  JobSelector on_host;
  on_host.host = "node";
  EXPECT_THAT(NamesIn(StatusOf(*c_.fleet, on_host, false)), ElementsAre("1 at a", "2 at b"));
  on_host.host = "other";
  EXPECT_THAT(NamesIn(StatusOf(*c_.fleet, on_host, false)), IsEmpty());
}

TEST_F(FleetQueriesTest, AJobThatMovesIsListedOnceAsItsOwnerSaysIt) {
  a_.Report("job");
  b_.Report("job");
  SetOwner("job", "b");
  const v1::StatusResponse status = StatusOf(*c_.fleet);
  EXPECT_THAT(NamesIn(status), ElementsAre("job at b"));
  EXPECT_EQ(status.jobs_total(), 1);
}

TEST_F(FleetQueriesTest, ADaemonAloneNamesNoOtherDaemon) {
  a_.Report("job");
  {
    const std::lock_guard<std::mutex> lock(town_.mutex);
    town_.daemons.resize(1);
  }
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet)), ElementsAre("job at "));
  EXPECT_EQ(JobOf(*a_.fleet, Named("job"))->status().daemon(), "");
}

TEST_F(FleetQueriesTest, AnyDaemonAnswersAboutOneJob) {
  b_.Report("job");
  for (const bool is_owner_known : {true, false}) {
    if (!is_owner_known) ForgetOwners();
    for (const OneDaemon* one : {&a_, &b_}) {
      const FleetQueries& queries = *one->fleet;
      EXPECT_THAT(NamesIn(StatusOf(queries, Named("job"), true)), ElementsAre("job at b"));
      const absl::StatusOr<v1::JobView> view = JobOf(queries, Named("job"));
      ASSERT_TRUE(view.ok()) << view.status();
      EXPECT_EQ(view->status().daemon(), "b");
      v1::ProcessesRequest processes;
      processes.set_job("job");
      EXPECT_EQ(queries.ListProcesses(processes)->total(), 2);
      v1::CallsRequest calls;
      calls.set_job("job");
      calls.add_ranks(1);
      EXPECT_EQ(queries.GetCalls(calls)->ranks_size(), 1);
      v1::CommunicatorRequest communicator;
      communicator.set_job("job");
      communicator.set_id(view->status().communicators(0).id());
      EXPECT_EQ(queries.GetCommunicator(communicator)->total(), 2);
      communicator.set_id("no such");
      EXPECT_THAT(std::string(queries.GetCommunicator(communicator).status().message()),
                  HasSubstr("has no communicator"));
    }
  }
}

TEST_F(FleetQueriesTest, AJobThatThereIsNotIsExplainedByAllThereAre) {
  a_.Report("train");
  b_.Report("evaluate");
  const absl::Status status = JobOf(*c_.fleet, Named("evaluat")).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(),
            "no job \"evaluat\"; did you mean evaluate? jobs here: evaluate, train");
  EXPECT_THAT(NamesIn(StatusOf(*c_.fleet, Named("evaluat"), true)), IsEmpty());
  JobSelector attempt = Named("train");
  attempt.attempt = 7;
  EXPECT_THAT(std::string(JobOf(*c_.fleet, attempt).status().message()),
              HasSubstr("\"train\" has no attempt 7"));
}

TEST_F(FleetQueriesTest, TheOwnerTakesTheStacksForACallerElsewhere) {
  b_.Report("job");
  v1::TakeStacksRequest request;
  request.set_job("job");
  Identity person;
  person.name = "certificate of ann";
  person.roles = {Role::kOperator};
  person.tenants = {kAll};
  const auto seen = a_.fleet->SeenByCaller(person);
  const absl::StatusOr<v1::StacksResponse> stacks = seen->GetStacks(request);
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  EXPECT_EQ(stacks->stacks_size(), 2);
  EXPECT_THAT(b_.audit(), ElementsAre("certificate of ann, through the daemon a: take stacks"));
}

// If the asked daemon asked others in turn, two that take each other for the owner would never end.
TEST_F(FleetQueriesTest, ADaemonThatIsAskedByAnotherAsksNoOther) {
  SetOwner("job", "b");
  const int before = b_.view.asked;
  EXPECT_TRUE(absl::IsNotFound(JobOf(*a_.fleet, Named("job")).status()));
  StatusOf(*a_.fleet);
  EXPECT_EQ(b_.view.asked, before);
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet->own(), {}, false)), IsEmpty());
}

TEST_F(FleetQueriesTest, IncidentsThatAreOpenElsewhereAreInEveryList) {
  a_.Report("1");
  b_.Report("2");
  a_.Hang("1");
  const std::string id = b_.Hang("2");
  for (const bool live_only : {true, false}) {
    v1::ListIncidentsRequest request;
    request.set_live_only(live_only);
    const auto list = a_.fleet->ListIncidents(request);
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(list->incidents_size(), 2);
    EXPECT_EQ(list->total(), 2);
    request.set_job("2");
    EXPECT_EQ(a_.fleet->ListIncidents(request)->incidents_size(), 1);
    EXPECT_EQ(a_.fleet->SeenBy(Tenants::Only({"other"}))->ListIncidents(request)->incidents_size(),
              0);
  }
  EXPECT_EQ(IncidentOf(*a_.fleet, id)->job(), "2");
  EXPECT_TRUE(absl::IsNotFound(IncidentOf(*a_.fleet, "no-such-1").status()));
}

TEST_F(FleetQueriesTest, TheOwnerOfTheJobWritesWhatPeopleAddToAnIncident) {
  b_.Report("job");
  const std::string id = b_.Hang("job");
  const auto acted = Act(a_.fleet.get(), id, "acknowledge", "", "token ann");
  ASSERT_TRUE(acted.ok()) << acted.status();
  EXPECT_EQ(IncidentOf(b_.local(), id)->acknowledged().who(), "token ann");
  EXPECT_THAT(b_.audit(), ElementsAre("token ann, through the daemon a: acknowledge"));
  const absl::Status again = Act(a_.fleet.get(), id, "acknowledge", "", "token bob").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
  Change("b", [](DaemonRow* row) {
    row->address = "127.0.0.1:1";
    row->incarnation = "2";
  });
  const absl::Status away = Act(a_.fleet.get(), id, "note", "text", "token ann").status();
  EXPECT_FALSE(away.ok());
}

TEST_F(FleetQueriesTest, AViewerLearnsThatAJobElsewhereMayHaveChanged) {
  a_.Report("1");
  b_.Report("2");
  const uint64_t all = a_.fleet->Version(""), own = a_.fleet->Version("1"),
                 other = a_.fleet->Version("2");
  EXPECT_TRUE(
      Eventually([&] { return a_.fleet->Version("") != all && a_.fleet->Version("2") != other; }));
  EXPECT_EQ(a_.fleet->Version("1"), own);
}

TEST_F(FleetQueriesTest, TheMetricsAreOfThisDaemonsJobsAndCountTheOthers) {
  a_.Report("mine");
  b_.Report("yours");
  Change("c", [](DaemonRow* row) { row->address = "127.0.0.1:1"; });
  StatusOf(*a_.fleet, {}, false);
  const std::string text = a_.fleet->GetMetrics(true, {});
  EXPECT_THAT(text, HasSubstr("job=\"mine\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("yours")));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_daemons{state=\"answers\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_daemons{state=\"silent\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_lease_held 1\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_jobs{state=\"owned\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_jobs{state=\"sought\"} 4\n"));
  EXPECT_EQ(text.find("# EOF"), text.size() - std::string("# EOF\n").size());
}

}  // namespace
}  // namespace rollcall
